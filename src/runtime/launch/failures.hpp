// Failures: how ranks failed, in virtual order, and the resulting outcome of the run.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/session_options.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {

// A position in virtual order.
struct VirtualInstant {
  std::int64_t time_ps;
  std::uint32_t rank;
  auto operator<=>(const VirtualInstant&) const = default;
};

struct RankFailure {
  std::int64_t time_ps = 0;  // the rank's clock when it stopped
  SessionReport::Outcome outcome = SessionReport::Outcome::failed;
  int exit_status = 1;
  std::string what{};       // for example "exited with status 3"
  bool is_breach = false;   // a violation of the protocol: its consequences are not listed
  bool is_refusal = false;  // reported once for all ranks that have it
  bool may_pass = false;    // the library's own launcher does not mind
  bool ends_others = true;  // false: the rank had already left the simulation, so no other rank waits for it
};

// The failure that is first in virtual order decides the outcome of the run, not the one that the host
// noticed first. The message lists the others.
class Failures {
 public:
  // Keeps one failure per rank. A later failure replaces an earlier one, except that an abort and a breach of
  // the protocol are kept and only their time is updated.
  void add(std::uint32_t rank, RankFailure failure);
  [[nodiscard]] bool has(std::uint32_t rank) const { return failures_.contains(rank); }
  [[nodiscard]] bool empty() const { return failures_.empty(); }
  // The first failure that requires the other ranks to be ended.
  [[nodiscard]] std::optional<VirtualInstant> first_to_end_others() const;
  // The ranks with failures, if all of these may pass.
  [[nodiscard]] std::vector<std::uint32_t> passing() const;
  // Sets outcome, status and message of the report if any rank failed.
  void report(SessionReport& report) const;

 private:
  std::map<std::uint32_t, RankFailure> failures_;
};

}  // namespace apenet
