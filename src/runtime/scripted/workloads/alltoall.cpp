// A message between all pairs of processes, by the algorithms of MPI libraries. Along each dimension of the
// grid in turn, it is the transposes of a Fourier transform.
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "kernel/grid.hpp"
#include "kernel/random.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

// In steps along each line of the grid: to process + k, from process - k.
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
class RingAllToAll final : public Transposes {
 public:
  explicit RingAllToAll(const WorkloadShape& shape) : Transposes(shape.bytes, {shape.count}) {}
};

// In step k the processes whose numbers have the bitwise difference k exchange, if their number is a power of
// two; otherwise those whose numbers add up to k.
class PairwiseAllToAll final : public WorkloadPattern {
 public:
  explicit PairwiseAllToAll(const WorkloadShape& shape) : bytes_(shape.bytes), count_(shape.count) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    for (std::uint32_t number = 0; number < count; ++number) {
      for (std::uint32_t step = 0; step < count_; ++step) {
        const ProcessId peer =
            std::has_single_bit(count_) ? process ^ step : (step + count_ - process) % count_;
        if (peer == process) continue;
        co_yield Operation::send(peer, bytes_);
        co_yield Operation::expect(peer, bytes_);
        co_yield Operation::wait(peer, bytes_);
      }
    }
  }

 private:
  std::int64_t bytes_;
  std::uint32_t count_;
};

// Every process posts its messages in a random order, `window` at a time, and waits for as many of the
// others. A window of all processes has the same distances to its targets, so that it cannot deadlock, and
// each process has an order of its own within it.
class DirectAllToAll final : public WorkloadPattern {
 public:
  DirectAllToAll(const WorkloadShape& shape, std::uint32_t window)
      : seed_(shape.seed), bytes_(shape.bytes), count_(shape.count), window_(window), distances_(count_ - 1) {
    std::iota(distances_.begin(), distances_.end(), 1U);
    RandomStream random(seed_, all_streams);
    shuffle(distances_, random);
  }

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    RandomStream random(seed_, process);
    for (std::uint32_t number = 0; number < count; ++number) {
      for (std::size_t first = 0; first < distances_.size(); first += window_) {
        const auto begin = distances_.begin() + static_cast<std::ptrdiff_t>(first);
        std::vector<std::uint32_t> some(begin, begin + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                           window_, distances_.size() - first)));
        shuffle(some, random);
        for (const std::uint32_t distance : some)
          co_yield Operation::expect((process + count_ - distance) % count_, bytes_);
        for (const std::uint32_t distance : some)
          co_yield Operation::send((process + distance) % count_, bytes_);
        for (const std::uint32_t distance : some)
          co_yield Operation::wait((process + count_ - distance) % count_, bytes_);
      }
    }
  }

 private:
  static constexpr std::uint64_t all_streams = std::uint64_t{1} << 32U;  // no process has this number

  static void shuffle(std::vector<std::uint32_t>& list, RandomStream& random) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
  }

  std::uint64_t seed_;
  std::int64_t bytes_;
  std::uint32_t count_;
  std::uint32_t window_;
  std::vector<std::uint32_t> distances_;
};

constexpr std::uint32_t direct_window = 32;  // MPICH's throttle, MPIR_CVAR_ALLTOALL_THROTTLE

// Bruck et al., IEEE Trans. Parallel and Distributed Systems 8, 1997: in step k the blocks whose distance to
// their target has bit k go to process + 2^k, so that a block travels through up to log2 n processes.
class BruckAllToAll final : public WorkloadPattern {
 public:
  explicit BruckAllToAll(const WorkloadShape& shape) : bytes_(shape.bytes), count_(shape.count) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    for (std::uint32_t number = 0; number < count; ++number) {
      for (std::uint32_t step = 1; step < count_; step *= 2) {
        std::int64_t blocks = 0;
        for (std::uint32_t distance = 1; distance < count_; ++distance) blocks += (distance & step) != 0;
        const ProcessId from = (process + count_ - step) % count_;
        co_yield Operation::send((process + step) % count_, blocks * bytes_);
        co_yield Operation::expect(from, blocks * bytes_);
        co_yield Operation::wait(from, blocks * bytes_);
      }
    }
  }

 private:
  std::int64_t bytes_;
  std::uint32_t count_;
};

// First along the longest dimension: to each process of the line what it and those of its plane get of this
// one; then, within the plane, to each process what the line has brought for it (Kumar et al., ICPP 2008). A
// message uses one dimension in the first phase, and the others in the second.
class TwoPhaseAllToAll final : public WorkloadPattern {
 public:
  explicit TwoPhaseAllToAll(const WorkloadShape& shape)
      : bytes_(shape.bytes),
        count_(shape.count),
        grid_(shape.grid),
        longest_(static_cast<std::size_t>(std::max_element(grid_.begin(), grid_.end()) - grid_.begin())) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    const GridLine line(grid_, process, longest_);
    std::vector<Phase> phases(2);
    phases[0].bytes = bytes_ * (count_ / line.extent);
    phases[1].bytes = bytes_ * line.extent;
    for (std::uint32_t step = 1; step < line.extent; ++step)
      phases[0].peers.push_back(line.further(process, step));
    for (std::uint32_t step = 1; step < count_; ++step) {
      const ProcessId other = (process + step) % count_;
      if (GridLine(grid_, other, longest_).coordinate == line.coordinate) phases[1].peers.push_back(other);
    }
    for (std::uint32_t number = 0; number < count; ++number) {
      for (const Phase& phase : phases) {
        for (const ProcessId peer : phase.peers) co_yield Operation::expect(peer, phase.bytes);
        for (const ProcessId peer : phase.peers) co_yield Operation::send(peer, phase.bytes);
        for (const ProcessId peer : phase.peers) co_yield Operation::wait(peer, phase.bytes);
      }
    }
  }

 private:
  struct Phase {
    std::vector<ProcessId> peers;
    std::int64_t bytes = 0;
  };

  std::int64_t bytes_;
  std::uint32_t count_;
  std::vector<std::uint32_t> grid_;
  std::size_t longest_;
};

template <bool has_window>
std::unique_ptr<WorkloadPattern> make_direct(const WorkloadShape& shape) {
  return std::make_unique<DirectAllToAll>(shape, has_window ? direct_window : shape.count);
}

}  // namespace

namespace workload_objects {

const Workload alltoall{
    .name = "alltoall",
    .definition = "every node to every other one; bandwidth is what one node sends",
    .algorithms = {{"ring", make_pattern<RingAllToAll>},
                   {"pairwise", make_pattern<PairwiseAllToAll>},
                   {"direct", make_direct<true>},
                   {"direct-at-once", make_direct<false>},
                   {"bruck", make_pattern<BruckAllToAll>},
                   {"two-phase", make_pattern<TwoPhaseAllToAll>}},
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
