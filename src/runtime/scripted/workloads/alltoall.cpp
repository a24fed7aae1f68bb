// A message between all pairs of processes, in steps: to rank + k, from rank - k. Along each dimension of the
// grid in turn, as the transposes of a Fourier transform.
#include "kernel/grid.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

class AllToAll final : public WorkloadPattern {
 public:
  explicit AllToAll(const WorkloadShape& shape) : bytes_(shape.bytes), count_(shape.count) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    for (std::uint32_t number = 0; number < count; ++number) {
      for (std::uint32_t step = 1; step < count_; ++step) {
        co_yield Operation::send((process + step) % count_, bytes_);
        co_yield Operation::expect((process + count_ - step) % count_, bytes_);
        co_yield Operation::wait((process + count_ - step) % count_, bytes_);
      }
    }
  }

 private:
  std::int64_t bytes_;
  std::uint32_t count_;
};

class Transposes final : public WorkloadPattern {
 public:
  explicit Transposes(const WorkloadShape& shape) : shape_(shape) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    for (std::uint32_t number = 0; number < count; ++number) {
      for (std::size_t d = 0; d < shape_.grid.size(); ++d) {
        const GridLine line(shape_.grid, process, d);
        for (std::uint32_t step = 1; step < line.extent; ++step) {
          co_yield Operation::send(line.further(process, step), shape_.bytes);
          co_yield Operation::expect(line.further(process, line.extent - step), shape_.bytes);
          co_yield Operation::wait(line.further(process, line.extent - step), shape_.bytes);
        }
      }
    }
  }

 private:
  const WorkloadShape& shape_;
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
