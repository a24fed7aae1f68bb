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

void Verdict::report(SessionReport& report, const Failures& failures) const {
  if (!failures.empty() && !is_from_outside()) {
    failures.report(report);
  } else if (stop_) {
    report.outcome = stop_->outcome;
    report.exit_status = stop_->exit_status;
    report.message = stop_->message;
  }
}

}  // namespace apenet
