// The times of single passes of a region, for recordings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace apenet::shim {

struct Pass {
  std::uint64_t number = 0;  // number among all passes of the region in this process, from 0
  std::int64_t time_ps = 0;
  std::int64_t probe_ns = 0;  // the longer of its two probes (shim/probe.hpp)
  bool is_alone = false;      // Region::alone
};

// All passes while they fit. Of more, a selection that depends on the pass numbers only, so that every
// recording of a program that repeats has the same passes. A pseudorandom one, because loops of programs have
// periods.
//
// Lives in memory of its own that is mapped with the first pass: the calls may come from inside an allocator.
class PassTimes {
 public:
  static constexpr std::size_t most_passes = 2048;

  // Pass numbers rise from call to call. Keeps nothing if the host has no memory.
  void add(const Pass& pass);
  [[nodiscard]] std::span<const Pass> passes() const { return {passes_, count_}; }

 private:
  [[nodiscard]] bool is_selected(std::uint64_t number) const;

  Pass* passes_ = nullptr;
  std::size_t count_ = 0;
  std::uint32_t halvings_ = 0;  // one pass in 2^halvings_ is selected
  bool is_mapped_ = false;      // or could not be
};

}  // namespace apenet::shim
