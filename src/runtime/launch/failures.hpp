// Failures: how the ranks of a run failed, in virtual order, and what that makes of the run.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/launch/session_facts.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {

// A place in virtual order.
struct VirtualInstant {
  std::int64_t time_ps;
  std::uint32_t rank;
  auto operator<=>(const VirtualInstant&) const = default;
};

struct RankFailure {
  std::int64_t time_ps = 0;  // the rank's clock when it stopped
  SessionReport::Outcome outcome = SessionReport::Outcome::failed;
  int exit_status = 1;
  std::string what{};       // "exited with status 3"
  bool ends_others = true;  // false: it had left the simulation, and nobody waits for it
};

// The first failure in virtual order decides how the run ended, not the first that the host came to; the
// others are told.
class Failures {
 public:
  // A rank has one failure: of two, the one that says more; an abort is never replaced.
  void add(std::uint32_t rank, RankFailure failure);
  [[nodiscard]] bool has(std::uint32_t rank) const { return failures_.contains(rank); }
  [[nodiscard]] bool empty() const { return failures_.empty(); }
  // The first that ends the other ranks.
  [[nodiscard]] std::optional<VirtualInstant> first_to_end_others() const;
  // Outcome, status and message of the run, if any rank failed.
  void report(SessionReport& report) const;

 private:
  std::map<std::uint32_t, RankFailure> failures_;
};

}  // namespace apenet
