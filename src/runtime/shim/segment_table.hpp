// The segments of a process (shim/computation.hpp): what was measured of each, or what each costs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/ipc/compute_table.hpp"
#include "runtime/shim/call_sites.hpp"
#include "runtime/shim/pass_times.hpp"

namespace apenet::shim {

// Samples of a time.
struct Samples {
  std::uint64_t count = 0;
  double sum_ps = 0;
  double sum_of_squares = 0;
  std::int64_t least_ps = 0;
  std::int64_t most_ps = 0;

  void add(std::int64_t ps);
};

struct Segment {
  std::uint32_t from = 0;  // sites
  std::uint32_t to = 0;
  bool is_used = false;
  std::uint64_t count = 0;
  Samples alone;                                     // while the rank had a core for itself, with warm caches
  Samples beside;                                    // while other ranks ran on the core between its calls
  PassTimes passes;                                  // ComputeMode::record
  std::int64_t cost_ps = ipc::ComputeCost::unknown;  // ComputeMode::profile
};

// Of fixed size, as CallSites. Not thread-safe.
class SegmentTable {
 public:
  static constexpr std::uint32_t most_segments = 8192;

  // Reads costs from a table of the front end (ipc/compute_table.hpp). Ends the process with a message if
  // that fails.
  void load(const char* path, std::uint32_t rank);

  // Returns nullptr, and counts the segment as lost, if there is no room for it.
  Segment* find(std::uint32_t from, std::uint32_t to);

  CallSites& sites() { return sites_; }
  // Lines for the front end. `all`: every segment; otherwise those without a cost.
  [[nodiscard]] std::string report(std::uint32_t rank, bool all) const;

 private:
  [[nodiscard]] std::int64_t cost_of(std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] bool is_foreign(const Module& module) const;
  [[nodiscard]] std::uint64_t key_of(std::uint32_t site) const;
  [[nodiscard]] std::string text_of(std::uint32_t site) const;

  CallSites sites_;
  std::array<Segment, most_segments> segments_{};
  std::uint32_t segment_count_ = 0;
  std::uint64_t lost_ = 0;
  std::span<const ipc::ComputeModule> known_modules_;
  std::span<const ipc::ComputeCost> costs_;
  std::uint32_t rank_ = 0;
};

}  // namespace apenet::shim
