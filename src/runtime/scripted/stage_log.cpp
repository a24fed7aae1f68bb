#include "runtime/scripted/stage_log.hpp"

#include <algorithm>

#include "network/network_trace.hpp"
#include "nic/messages.hpp"

namespace apenet {

void StageLog::posted(std::uint32_t message, Time when) {
  if (marks_.size() <= message) marks_.resize(message + 1);
  marks_[message].assign(1, {when, Stage::doorbell});
  deferrals_.erase(message);
}

// Each of the two processes learns of the message by an interrupt of its own.
std::vector<StageLog::Mark> StageLog::marks(std::uint32_t message, ProcessId process) const {
  std::vector<Mark> marks = marks_[message];
  const auto found = deferrals_.find(message);
  if (found == deferrals_.end()) return marks;
  for (const Deferral& deferral : found->second) {
    if (deferral.process != process) continue;
    while (marks.size() > 1 && marks.back().from >= deferral.from) marks.pop_back();
    marks.push_back({deferral.from, Stage::interrupt});
  }
  return marks;
}

// A component may learn only later from when on a stage was, but never before the stage that it has entered
// last. Of equal neighbours the first stays.
void StageLog::mark(std::uint32_t message, Stage stage, Time from) {
  std::vector<Mark>& marks = marks_[message];
  from = std::max(from, marks.back().from);
  if (marks.back().from == from && marks.size() > 1) marks.pop_back();
  if (marks.back().stage != stage) marks.push_back({from, stage});
}

void StageLog::record(const TraceRecord& record) {
  if (record.kind == EventKind::nic) record_card(record);
  if (record.kind == EventKind::link) record_network(record);
}

void StageLog::record_card(const TraceRecord& record) {
  const auto message = static_cast<std::uint32_t>(record.a);
  if (static_cast<CardTrace>(record.what) == CardTrace::injects) injecting_ = message;
  if (static_cast<CardTrace>(record.what) == CardTrace::stage)
    mark(message, static_cast<Stage>(record.b), record.time);
  if (static_cast<CardTrace>(record.what) == CardTrace::deferred)
    deferrals_[message].push_back({static_cast<ProcessId>(record.b), record.time});
}

void StageLog::record_network(const TraceRecord& record) {
  const auto sequence = static_cast<std::uint32_t>(record.b >> 32U);
  const auto what = static_cast<NetworkTrace>(record.what);
  if (what == NetworkTrace::injected) {
    if (injecting_ == none) return;
    mark(injecting_, Stage::links, record.time);
    underway_[{record.a, sequence, record.place}] = injecting_;
    injecting_ = none;
    return;
  }
  const auto found = underway_.find({record.a, sequence, record.other});
  if (found == underway_.end()) return;
  const std::uint32_t message = found->second;
  switch (what) {
    case NetworkTrace::waited:
      mark(message, Stage::link_busy, record.time);
      mark(message, Stage::links, record.until);
      break;
    case NetworkTrace::blocked:
      mark(message, Stage::credits, record.time);
      mark(message, Stage::links, record.until);
      break;
    case NetworkTrace::resent:
      mark(message, Stage::retransmission, record.time);
      mark(message, Stage::links, record.until);
      break;
    case NetworkTrace::taken_back:
      mark(message, Stage::retransmission, record.time);
      break;
    case NetworkTrace::delivered:
      mark(message, Stage::card, record.time);
      underway_.erase(found);
      break;
    default:
      break;
  }
}

}  // namespace apenet
