// A message between all pairs of processes, in steps: to rank + k, from rank - k. Along each dimension of the
// grid in turn, as the transposes of a Fourier transform.
#include <utility>
#include <vector>

#include "kernel/grid.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

class Transposes : public WorkloadPattern {
 public:
  explicit Transposes(const WorkloadShape& shape) : Transposes(shape.bytes, shape.grid) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const final {
    for (std::uint32_t number = 0; number < count; ++number) {
      for (std::size_t d = 0; d < grid_.size(); ++d) {
        const GridLine line(grid_, process, d);
        for (std::uint32_t step = 1; step < line.extent; ++step) {
          co_yield Operation::send(line.further(process, step), bytes_);
          co_yield Operation::expect(line.further(process, line.extent - step), bytes_);
          co_yield Operation::wait(line.further(process, line.extent - step), bytes_);
        }
      }
    }
  }

 protected:
  Transposes(std::int64_t bytes, std::vector<std::uint32_t> grid) : bytes_(bytes), grid_(std::move(grid)) {}

 private:
  std::int64_t bytes_;
  std::vector<std::uint32_t> grid_;
};

// In a single line of all processes.
class AllToAll final : public Transposes {
 public:
  explicit AllToAll(const WorkloadShape& shape) : Transposes(shape.bytes, {shape.count}) {}
};

}  // namespace

namespace workload_objects {

const Workload alltoall{
    .name = "alltoall",
    .definition = "every node to every other one; bandwidth is what one node sends",
    .algorithms = {{"", make_pattern<AllToAll>}},
};

const Workload fft{
    .name = "fft",
    .definition =
        "every node to every other one in its line, along each dimension in turn; "
        "bandwidth is what one node sends",
    .algorithms = {{"", make_pattern<Transposes>}},
};

}  // namespace workload_objects
}  // namespace apenet
