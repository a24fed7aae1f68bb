// The regions of a process (shim/computation.hpp): what was measured of each, or what each costs.
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

struct Region {
  std::uint32_t from = 0;  // sites
  std::uint32_t to = 0;
  bool is_used = false;
  std::uint64_t count = 0;
  Samples alone;                                     // while the rank had a core for itself, with warm caches
  Samples beside;                                    // while other ranks ran on the core between its calls
  PassTimes passes;                                  // ComputeMode::record
  std::int64_t cost_ps = ipc::ComputeCost::unknown;  // ComputeMode::profile
};

// Has a fixed size, as CallSites. Not thread-safe.
class RegionTable {
 public:
  static constexpr std::uint32_t most_regions = 8192;
  static constexpr std::uint32_t most_call_paths = 16384;  // with one region each

  // Reads costs from a table of the front end (ipc/compute_table.hpp). Ends the process with a message if
  // that fails.
  void load(const char* path, std::uint32_t rank);

  // For how long, at least, the thread computes after this call path; 0 if nothing is known, or if it
  // does not pay to overlap meanwhile.
  [[nodiscard]] std::int64_t least_after(std::uint64_t call_path) const;
  // Something shorter has followed: the pass took as long as least_after() said. The table no longer knows
  // the call path.
  void forget(std::uint64_t call_path);
  // Notes for the report that the region has followed this call path.
  void note_call_path(const Region& region, std::uint64_t call_path);

  // Returns nullptr, and counts the region as lost, if there is no room for it.
  Region* find(std::uint32_t from, std::uint32_t to);

  CallSites& sites() { return sites_; }
  // A site's key: the same number in every run of the program.
  [[nodiscard]] std::uint64_t key_of(std::uint32_t site);
  // Lines for the front end. `all`: every region; otherwise those without a cost.
  [[nodiscard]] std::string report(std::uint32_t rank, bool all) const;

 private:
  // A region behind the calls before it.
  struct Followed {
    std::uint64_t call_path = 0;
    std::uint32_t region = 0;  // its number, from 1; 0: this entry is free
  };

  [[nodiscard]] std::int64_t cost_of(std::uint32_t from, std::uint32_t to);
  void append_call_paths(std::string& to, const Region& region) const;
  [[nodiscard]] ipc::ComputeCallPath* find_call_path(std::uint64_t call_path) const;
  [[nodiscard]] bool is_foreign(const Module& module) const;
  [[nodiscard]] std::string text_of(std::uint32_t site) const;

  CallSites sites_;
  std::array<Region, most_regions> regions_{};
  std::uint32_t region_count_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t forgotten_ = 0;
  std::array<std::uint64_t, CallSites::most_sites> keys_{};  // 0 until asked for
  std::array<Followed, most_call_paths> call_paths_{};
  std::uint32_t call_path_count_ = 0;
  std::span<const ipc::ComputeModule> known_modules_;
  std::span<const ipc::ComputeCost> costs_;
  std::span<ipc::ComputeCallPath> known_call_paths_;
  std::uint32_t rank_ = 0;
};

}  // namespace apenet::shim
