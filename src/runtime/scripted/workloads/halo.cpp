// Each process exchanges messages with both neighbours in every dimension of the grid.
#include "kernel/grid.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

class Halo final : public WorkloadPattern {
 public:
  explicit Halo(const WorkloadShape& shape) : shape_(shape) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    const std::vector<Operation> exchange = exchange_of(process);
    for (std::uint32_t number = 0; number < count; ++number) co_yield exchange;
  }

 private:
  // As many bytes come back from each neighbour.
  [[nodiscard]] std::vector<Operation> exchange_of(ProcessId process) const {
    std::vector<Operation> operations;
    operations.reserve(3 * 2 * shape_.grid.size());
    for (std::size_t d = 0; d < shape_.grid.size(); ++d) {
      const GridLine line(shape_.grid, process, d);
      if (line.extent == 1) continue;
      const std::int64_t bytes = shape_.face_bytes.empty() ? shape_.bytes : shape_.face_bytes[d];
      if (shape_.periodic || line.coordinate + 1 < line.extent)
        operations.push_back(Operation::send(line.further(process, 1), bytes));
      if (shape_.periodic || line.coordinate > 0)
        operations.push_back(Operation::send(line.further(process, line.extent - 1), bytes));
    }
    const std::size_t sends = operations.size();
    for (std::size_t i = 0; i < sends; ++i)
      operations.push_back(Operation::expect(operations[i].peer, operations[i].bytes));
    for (std::size_t i = 0; i < sends; ++i)
      operations.push_back(Operation::wait(operations[i].peer, operations[i].bytes));
    return operations;
  }

  const WorkloadShape& shape_;
};

}  // namespace

namespace workload_objects {

const Workload halo{
    .name = "halo",
    .definition = "every node to both neighbours in each dimension; bandwidth is what one node sends",
    .has_surfaces = true,
    .has_programs = true,
    .algorithms = {{"", make_pattern<Halo>}},
};

const Workload halo4d{
    .name = "halo4d",
    .definition = "as halo in a grid of four dimensions, two of them on one dimension of the nodes",
    .grid = Workload::Grid::folded,
    .has_surfaces = true,
    .algorithms = {{"", make_pattern<Halo>}},
};

const Workload checkerboard{
    .name = "checkerboard",
    .definition = "as halo twice, once for the sites of each parity; bandwidth is what one node sends",
    .rounds = 2,
    .algorithms = {{"", make_pattern<Halo>}},
};

}  // namespace workload_objects
}  // namespace apenet
