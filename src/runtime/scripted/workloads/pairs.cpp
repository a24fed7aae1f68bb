// Each process exchanges a message with a partner: a random one, or its mirror image.
#include <algorithm>
#include <numeric>
#include <string>

#include "kernel/grid.hpp"
#include "kernel/random.hpp"
#include "kernel/refuse.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

class Pairs : public WorkloadPattern {
 public:
  WorkloadStream rounds(ProcessId process, std::uint32_t count) const final {
    for (std::uint32_t number = 0; number < count; ++number) {
      const ProcessId other = partner(process, number);
      if (other == process) continue;  // has no partner
      co_yield Operation::send(other, bytes_);
      co_yield Operation::expect(other, bytes_);
      co_yield Operation::wait(other, bytes_);
    }
  }

 protected:
  explicit Pairs(std::int64_t bytes) : bytes_(bytes) {}
  [[nodiscard]] virtual ProcessId partner(ProcessId process, std::uint32_t number) const = 0;

 private:
  std::int64_t bytes_;
};

// A random perfect matching per round: pairs of neighbours in a shuffled order (Fisher-Yates). With an odd
// number of processes, one has no partner.
class RandomPairs final : public Pairs {
 public:
  explicit RandomPairs(const WorkloadShape& shape) : Pairs(shape.bytes) {
    constexpr std::uint64_t stream = 0x7061697273;  // "pairs"
    RandomStream random(shape.seed, stream);
    const std::uint32_t count = shape.count;
    constexpr std::uint64_t most_partners = std::uint64_t{1} << 28;
    if (std::uint64_t{shape.rounds} * count > most_partners) {
      refuse_value("iterations", std::to_string(shape.rounds),
                   "at most " + std::to_string(most_partners / count) + " with " + std::to_string(count) +
                       " processes, whose partners are drawn before the run");
    }
    std::vector<ProcessId> order(count);
    std::iota(order.begin(), order.end(), 0);
    for (std::uint32_t i = 0; i < shape.rounds; ++i) {
      for (std::uint32_t left = count; left > 1; --left)
        std::swap(order[left - 1], order[random.below(left)]);
      std::vector<ProcessId> partners(count);
      if (count % 2 == 1) partners[order[count - 1]] = order[count - 1];
      for (std::uint32_t p = 0; p + 1 < count; p += 2) {
        partners[order[p]] = order[p + 1];
        partners[order[p + 1]] = order[p];
      }
      partners_.push_back(std::move(partners));
    }
  }

 private:
  [[nodiscard]] ProcessId partner(ProcessId process, std::uint32_t number) const override {
    return partners_[number][process];
  }

  std::vector<std::vector<ProcessId>> partners_;  // by round, then process
};

// The grid is cut across its longest dimension, and each process exchanges with its mirror image. In an odd
// extent, those on the cut have no partner.
class Bisection final : public Pairs {
 public:
  explicit Bisection(const WorkloadShape& shape) : Pairs(shape.bytes), grid_(shape.grid) {
    const auto longest = std::max_element(grid_.begin(), grid_.end());
    dimension_ = static_cast<std::size_t>(std::distance(grid_.begin(), longest));
  }

 private:
  [[nodiscard]] ProcessId partner(ProcessId process, std::uint32_t /*number*/) const override {
    const GridLine line(grid_, process, dimension_);
    return line.at(process, line.extent - 1 - line.coordinate);
  }

  std::vector<std::uint32_t> grid_;
  std::size_t dimension_;
};

}  // namespace

namespace workload_objects {

const Workload randompairs{
    .name = "randompairs",
    .definition = "random pairs exchange, new ones each time; bandwidth is what one node sends",
    .algorithms = {{"", make_pattern<RandomPairs>}},
};

const Workload bisection{
    .name = "bisection",
    .definition =
        "one half exchanges with its mirror image in the other; "
        "bandwidth is that across the cut, both ways",
    .bandwidth_of = Workload::BandwidthOf::cut,
    .grid = Workload::Grid::row,
    .algorithms = {{"", make_pattern<Bisection>}},
};

}  // namespace workload_objects
}  // namespace apenet
