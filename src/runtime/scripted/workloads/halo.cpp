// Each process exchanges messages with both neighbours in every dimension of the grid.
#include <cmath>

#include "kernel/grid.hpp"
#include "kernel/refuse.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

// An exchange between computations that take no time unless a pattern sets them.
class Halo : public WorkloadPattern {
 public:
  explicit Halo(const WorkloadShape& shape) : shape_(shape) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const final {
    const std::vector<Operation> exchange = exchange_of(process);
    for (std::uint32_t number = 0; number < count; ++number) co_yield exchange;
  }

 protected:
  struct Computation {
    Time before, meanwhile, after;
  };

  [[nodiscard]] const WorkloadShape& shape() const { return shape_; }

 private:
  [[nodiscard]] virtual std::int64_t bytes_along(std::size_t dimension) const {
    return shape_.face_bytes.empty() ? shape_.bytes : shape_.face_bytes[dimension];
  }
  [[nodiscard]] virtual Computation computation() const { return {}; }

  // As many bytes come back from each neighbour.
  [[nodiscard]] std::vector<Operation> exchange_of(ProcessId process) const {
    std::vector<Operation> sends;
    for (std::size_t d = 0; d < shape_.grid.size(); ++d) {
      const GridLine line(shape_.grid, process, d);
      if (line.extent == 1) continue;
      const std::int64_t bytes = bytes_along(d);
      if (shape_.periodic || line.coordinate + 1 < line.extent)
        sends.push_back(Operation::send(line.further(process, 1), bytes));
      if (shape_.periodic || line.coordinate > 0)
        sends.push_back(Operation::send(line.further(process, line.extent - 1), bytes));
    }
    const Computation computed = computation();
    std::vector<Operation> operations;
    operations.reserve(3 + 3 * sends.size());
    add_computation(operations, computed.before);
    operations.insert(operations.end(), sends.begin(), sends.end());
    for (const Operation& send : sends) operations.push_back(Operation::expect(send.peer, send.amount));
    add_computation(operations, computed.meanwhile);
    for (const Operation& send : sends) operations.push_back(Operation::wait(send.peer, send.amount));
    add_computation(operations, computed.after);
    return operations;
  }

  static void add_computation(std::vector<Operation>& operations, Time span) {
    if (span > Time::zero()) operations.push_back(Operation::compute(span));
  }

  const WorkloadShape& shape_;
};

// Wilson's operator on the sites of one parity, in two rounds on those of both: the sender multiplies what
// goes up by the link, the receiver what comes from above (bench/lqcd/wilson.c).
class Dslash final : public Halo {
 public:
  explicit Dslash(const WorkloadShape& shape) : Halo(shape) {
    if (shape.sites == 0) refuse_value("lattice", "none", "one for dslash, such as 32x32x32x64");
    for (std::size_t d = 0; d < shape.grid.size(); ++d) {
      if (shape.grid[d] == 1) continue;
      const std::int64_t sites = shape.face_bytes[d] / shape.site_bytes;
      if (sites % 2 != 0) {
        refuse_value("lattice", std::to_string(sites) + " sites on a surface of a process",
                     "an even number for dslash, half of each parity");
      }
      face_sites_ += sites / 2;
    }
  }

 private:
  [[nodiscard]] std::int64_t bytes_along(std::size_t dimension) const override {
    return shape().face_bytes[dimension] / 2;
  }
  [[nodiscard]] Computation computation() const override {
    constexpr std::int64_t project_flops = 12;
    constexpr std::int64_t multiply_flops = 2 * 66;
    constexpr std::int64_t add_flops = 24;
    constexpr std::int64_t site_flops = 1320;
    const std::int64_t before = face_sites_ * (2 * project_flops + multiply_flops);
    const std::int64_t after = face_sites_ * (multiply_flops + 2 * add_flops);
    const std::int64_t whole = shape().sites / 2 * site_flops;
    return {time_of(before), time_of(whole - before - after), time_of(after)};
  }
  [[nodiscard]] Time time_of(std::int64_t flops) const {
    constexpr double ps_per_second = 1e12;
    return Time::from_ps(std::llround(static_cast<double>(flops) /
                                      static_cast<double>(shape().flops_per_second) * ps_per_second));
  }

  std::int64_t face_sites_ = 0;  // sites of one parity, in one direction of each dimension
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

const Workload dslash{
    .name = "dslash",
    .definition =
        "Wilson's operator on a lattice: as checkerboard in four dimensions, computing meanwhile; "
        "bandwidth is what one node sends",
    .grid = Workload::Grid::lattice,
    .rounds = 2,
    .has_surfaces = true,
    .has_partitions = false,
    .algorithms = {{"", make_pattern<Dslash>}},
};

const Workload checkerboard{
    .name = "checkerboard",
    .definition = "as halo twice, once for the sites of each parity; bandwidth is what one node sends",
    .rounds = 2,
    .algorithms = {{"", make_pattern<Halo>}},
};

}  // namespace workload_objects
}  // namespace apenet
