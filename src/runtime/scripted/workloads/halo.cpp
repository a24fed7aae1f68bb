// Each process exchanges messages with both neighbours in every dimension of the grid.
#include "kernel/grid.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

class Halo final : public WorkloadPattern {
 public:
  explicit Halo(const WorkloadShape& shape) : shape_(shape) {}

  WorkloadStream round(ProcessId process, std::uint32_t /*number*/) const override {
    const std::vector<Operation> messages = to_neighbours(process);
    for (const Operation& message : messages) co_yield message;
    for (const Operation& message : messages) co_yield Operation::expect(message.peer, message.bytes);
    for (const Operation& message : messages) co_yield Operation::wait(message.peer, message.bytes);
  }

 private:
  // As many bytes come back from each neighbour.
  [[nodiscard]] std::vector<Operation> to_neighbours(ProcessId process) const {
    std::vector<Operation> messages;
    messages.reserve(2 * shape_.grid.size());
    for (std::size_t d = 0; d < shape_.grid.size(); ++d) {
      const GridLine line(shape_.grid, process, d);
      if (line.extent == 1) continue;
      const std::int64_t bytes = shape_.face_bytes.empty() ? shape_.bytes : shape_.face_bytes[d];
      if (shape_.periodic || line.coordinate + 1 < line.extent)
        messages.push_back(Operation::send(line.further(process, 1), bytes));
      if (shape_.periodic || line.coordinate > 0)
        messages.push_back(Operation::send(line.further(process, line.extent - 1), bytes));
    }
    return messages;
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
