// A toy workload, for the test that a workload needs nothing but its object and its line.
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

// Each process sends a message to the next one.
class NextNode final : public WorkloadPattern {
 public:
  explicit NextNode(const WorkloadShape& shape) : shape_(shape) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    const ProcessId previous = (process + shape_.count - 1) % shape_.count;
    for (std::uint32_t number = 0; number < count; ++number) {
      co_yield Operation::send((process + 1) % shape_.count, shape_.bytes);
      co_yield Operation::expect(previous, shape_.bytes);
      co_yield Operation::wait(previous, shape_.bytes);
    }
  }

 private:
  const WorkloadShape& shape_;
};

}  // namespace

namespace workload_objects {

const Workload ring{
    .name = "ring", .definition = "to the next node", .algorithms = {{"", make_pattern<NextNode>}}};

}  // namespace workload_objects
}  // namespace apenet
