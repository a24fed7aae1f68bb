#include "runtime/launch/verdict.hpp"

#include <utility>

namespace apenet {

void Verdict::stop(SessionReport::Outcome outcome, int exit_status, std::string message) {
  if (!stop_) stop_ = Stop{outcome, exit_status, std::move(message)};
}

bool Verdict::is_from_outside() const {
  return stop_ && (stop_->outcome == SessionReport::Outcome::interrupted ||
                   stop_->outcome == SessionReport::Outcome::output_closed);
}

void Verdict::report(SessionReport& report, const Failures& failures, int launcher_status) const {
  const auto set = [&report](const Stop& stop) {
    report.outcome = stop.outcome;
    report.exit_status = stop.exit_status;
    report.message = stop.message;
  };
  if (!failures.empty() && !is_from_outside()) {
    failures.report(report);
  } else if (stop_) {
    set(*stop_);
  } else if (launcher_status != 0) {
    set({SessionReport::Outcome::failed, launcher_status,
         "the launcher exited with status " + std::to_string(launcher_status)});
  }
}

}  // namespace apenet
