// Verdict: what ends a run before its ranks do, and the outcome that the report states.
#pragma once

#include <optional>
#include <string>

#include "runtime/launch/failures.hpp"
#include "runtime/launch/session_options.hpp"

namespace apenet {

// A failure of a rank decides the outcome, unless the run was ended from outside (an interrupt, a closed
// output). Without either, the first call of stop() decides.
class Verdict {
 public:
  // Ends the run, whatever the ranks do. Later calls have no effect.
  void stop(SessionReport::Outcome outcome, int exit_status, std::string message);
  [[nodiscard]] bool is_stopped() const { return stop_.has_value(); }
  [[nodiscard]] bool is_from_outside() const;
  // Sets outcome, exit status and message.
  void report(SessionReport& report, const Failures& failures) const;

 private:
  struct Stop {
    SessionReport::Outcome outcome;
    int exit_status;
    std::string message;
  };
  std::optional<Stop> stop_;
};

}  // namespace apenet
