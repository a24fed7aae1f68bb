// A vector reduced over all processes. The additions take no time.
#include <utility>
#include <vector>

#include "kernel/grid.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

// A part of the vector to be reduced.
struct VectorPart {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t bytes() const { return end - begin; }
  // Part `index` of `count` parts of nearly equal size.
  [[nodiscard]] VectorPart part(std::uint32_t index, std::uint32_t count) const {
    return {begin + bytes() * index / count, begin + bytes() * (index + 1) / count};
  }
};

// The ring of processes along one dimension of the grid.
struct Ring {
  Ring(ProcessId process, const GridLine& line)
      : position(line.coordinate),
        size(line.extent),
        next(line.further(process, 1)),
        previous(line.further(process, line.extent - 1)) {}
  std::uint32_t position;
  std::uint32_t size;
  ProcessId next;
  ProcessId previous;
};

// size - 1 steps around a ring; in each, the process sends a part to the next one. `first`: the part to send
// first; each further step sends the part received in the step before. Reduce-scatter begins with the part of
// the own position and completes the part after it, with which allgather begins.
struct Circulation {
  struct Step {
    std::int64_t sent_bytes;
    std::int64_t received_bytes;
  };
  [[nodiscard]] std::uint32_t steps() const { return ring.size - 1; }
  [[nodiscard]] Step step(std::uint32_t number) const {
    const std::uint32_t out = (first + 2 * ring.size - number) % ring.size;
    const std::uint32_t in = (out + ring.size - 1) % ring.size;
    return {range.part(out, ring.size).bytes(), range.part(in, ring.size).bytes()};
  }
  Ring ring;
  VectorPart range;
  std::uint32_t first;
};

// Reduce-scatters around the rings along one dimension of the grid after another, on smaller and smaller
// parts, and allgathers in the opposite order: 2 sum (n_d - 1) steps, and as many bytes as one ring of all
// (the bucket algorithm; Barnett et al., "Global combine on mesh architectures with wormhole routing", IPPS
// 1993).
class TorusAllreduce : public WorkloadPattern {
 public:
  explicit TorusAllreduce(const WorkloadShape& shape) : TorusAllreduce(shape.bytes, shape.grid) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const final {
    const std::vector<Circulation> circulations = circulations_of(process);
    for (std::uint32_t number = 0; number < count; ++number) {
      for (const Circulation& around : circulations) {
        for (std::uint32_t i = 0; i < around.steps(); ++i) {
          const Circulation::Step step = around.step(i);
          co_yield Operation::send(around.ring.next, step.sent_bytes);
          co_yield Operation::expect(around.ring.previous, step.received_bytes);
          co_yield Operation::wait(around.ring.previous, step.received_bytes);
        }
      }
    }
  }

 protected:
  TorusAllreduce(std::int64_t bytes, std::vector<std::uint32_t> grid)
      : vector_{0, bytes}, grid_(std::move(grid)) {}

 private:
  [[nodiscard]] std::vector<Circulation> circulations_of(ProcessId process) const {
    std::vector<Circulation> circulations;
    VectorPart range = vector_;
    for (std::size_t d = 0; d < grid_.size(); ++d) {
      const Ring ring(process, GridLine(grid_, process, d));
      circulations.push_back({ring, range, ring.position});
      range = range.part((ring.position + 1) % ring.size, ring.size);
    }
    for (std::size_t d = grid_.size(); d-- > 0;) {
      const Circulation& there = circulations[d];
      circulations.push_back({there.ring, there.range, there.ring.position + 1});
    }
    return circulations;
  }

  VectorPart vector_;
  std::vector<std::uint32_t> grid_;
};

// In a ring of all processes: 2 (n - 1) steps of bytes / n.
class RingAllreduce final : public TorusAllreduce {
 public:
  explicit RingAllreduce(const WorkloadShape& shape) : TorusAllreduce(shape.bytes, {shape.count}) {}
};

// log2 n exchanges of the whole vector with rank ^ 2^k. Processes beyond the largest power of two first give
// their part to a neighbour, and get the result back (Thakur, Rabenseifner, Gropp, "Optimization of
// collective communication operations in MPICH", IJHPCA 19, 2005).
class RecursiveDoubling final : public WorkloadPattern {
 public:
  explicit RecursiveDoubling(const WorkloadShape& shape) : bytes_(shape.bytes) {
    while (power_ * 2 <= shape.count) power_ *= 2;
    beyond_ = shape.count - power_;
  }

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    const std::vector<Operation> round = round_of(process);
    for (std::uint32_t number = 0; number < count; ++number) co_yield round;
  }

 private:
  [[nodiscard]] std::vector<Operation> round_of(ProcessId process) const {
    std::vector<Operation> round;
    const auto receive = [&](ProcessId from) {
      round.push_back(Operation::expect(from, bytes_));
      round.push_back(Operation::wait(from, bytes_));
    };
    const bool is_paired = process < 2 * beyond_;
    if (is_paired && process % 2 == 0) {
      round.push_back(Operation::send(process + 1, bytes_));
      receive(process + 1);
      return round;
    }
    if (is_paired) receive(process - 1);
    const std::uint32_t number = is_paired ? process / 2 : process - beyond_;
    for (std::uint32_t distance = 1; distance < power_; distance *= 2) {
      const ProcessId partner = process_of(number ^ distance);
      round.push_back(Operation::send(partner, bytes_));
      receive(partner);
    }
    if (is_paired) round.push_back(Operation::send(process - 1, bytes_));
    return round;
  }
  // `number`: among the processes that exchange. This many of them have another one's part: the odd ones.
  [[nodiscard]] ProcessId process_of(std::uint32_t number) const {
    return number < beyond_ ? 2 * number + 1 : number + beyond_;
  }

  std::int64_t bytes_;
  std::uint32_t power_ = 1;
  std::uint32_t beyond_ = 0;
};

}  // namespace

namespace workload_objects {

const Workload allreduce{
    .name = "allreduce",
    .definition = "a vector of this size, reduced over all nodes; bandwidth is size over time",
    .bandwidth_of = Workload::BandwidthOf::vector,
    .has_partitions = false,
    .algorithms = {{"ring", make_pattern<RingAllreduce>},
                   {"recursive-doubling", make_pattern<RecursiveDoubling>},
                   {"torus", make_pattern<TorusAllreduce>}},
};

const Workload globalsum{
    .name = "globalsum",
    .definition = "the two sums of an iteration of conjugate gradients; bandwidth is what one node sends",
    .rounds = 2,
    .algorithms = {{"recursive-doubling", make_pattern<RecursiveDoubling>}},
};

}  // namespace workload_objects
}  // namespace apenet
