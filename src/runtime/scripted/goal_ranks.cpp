#include "runtime/scripted/goal_ranks.hpp"

#include <algorithm>
#include <stdexcept>

namespace apenet {

namespace {

std::vector<std::uint16_t> cpus_of(const std::vector<GoalJob>& jobs) {
  std::vector<std::uint16_t> cpus;
  for (const GoalJob& job : jobs)
    for (const GoalRank& rank : job.schedule->ranks) cpus.push_back(rank.cpus);
  return cpus;
}

}  // namespace

std::vector<NodeId> nodes_of(const std::vector<GoalJob>& jobs) {
  std::vector<NodeId> nodes;
  for (const GoalJob& job : jobs) {
    if (job.node_of_rank.size() != job.schedule->ranks.size()) {
      throw std::invalid_argument("map = " + std::to_string(job.node_of_rank.size()) +
                                  " ranks: expected the " + std::to_string(job.schedule->ranks.size()) +
                                  " of " + job.schedule->file);
    }
    nodes.insert(nodes.end(), job.node_of_rank.begin(), job.node_of_rank.end());
  }
  return nodes;
}

GoalRanks::GoalRanks(Simulation& simulation, Machine& machine, ProcessId first,
                     const std::vector<GoalJob>& jobs)
    : has_gpu_(machine.description().host.gpu_copy_bytes_per_second > 0),
      rails_{"first"},
      messages_(simulation, machine, first, cpus_of(jobs), *this) {
  for (const RailDescription& rail : machine.description().rails) rails_.push_back(rail.name);
  for (std::uint32_t j = 0; j < jobs.size(); ++j) {
    jobs_.push_back({*jobs[j].schedule, static_cast<ProcessId>(ranks_.size()), jobs[j].start});
    for (const GoalRank& trace : jobs[j].schedule->ranks) add_rank(j, trace);
  }
}

void GoalRanks::log(ReplayLog& log, Observation& observation) {
  log_ = &log;
  for (const Rank& rank : ranks_) {
    log.began.emplace_back(rank.trace.operations.size());
    log.ended.emplace_back(rank.trace.operations.size());
  }
  messages_.log_waits(log, observation);
}

void GoalRanks::begin(Time now) {
  epoch_ = now;
  for (Job& job : jobs_) job.start += now;
  for (Rank& rank : ranks_) rank.finish = jobs_[rank.job].start;
  messages_.begin(now);
}

std::vector<JobReport> GoalRanks::reports() {
  std::vector<JobReport> reports;
  for (const Job& job : jobs_) reports.push_back(report_on(job));
  return reports;
}

void GoalRanks::add_rank(std::uint32_t job, const GoalRank& trace) {
  Rank& rank = ranks_.emplace_back(Rank{.trace = trace, .job = job});
  const std::size_t count = trace.operations.size();
  rank.finish = jobs_[job].start;
  rank.left = static_cast<std::uint32_t>(count);
  rank.waits_for.resize(count);
  rank.is_ended.resize(count);
  if (trace.cpus > 1) rank.earliest.resize(count);
  for (const std::uint32_t successor : trace.successors) ++rank.waits_for[successor & ~GoalRank::on_start];
  for (std::uint32_t i = 0; i < count; ++i) {
    if (rank.waits_for[i] == 0) rank.ready.push(i);
  }
}

bool GoalRanks::proceed(ProcessId id) {
  Ready& ready = ranks_[id].ready;
  while (!ready.empty()) {
    const std::uint32_t operation = ready.top();
    ready.pop();
    const Time began = start(id, operation);
    if (log_ != nullptr) log_->began[id][operation] = began;
    release(id, operation, began, true);
  }
  return ranks_[id].left > 0;
}

Time GoalRanks::start(ProcessId id, std::uint32_t number) {
  const Rank& rank = ranks_[id];
  const GoalOperation& operation = rank.trace.operations[number];
  const Job& job = jobs_[rank.job];
  const Time earliest = rank.earliest.empty() ? job.start : std::max(job.start, rank.earliest[number]);
  const bool is_of_any = operation.kind == GoalOperationKind::receive && operation.peer == any_rank;
  const ProcessId peer = is_of_any ? any_rank : job.first_rank + operation.peer;
  switch (operation.kind) {
    case GoalOperationKind::send:
      return messages_.send(id, operation.cpu, earliest, number, {id, operation.tag, operation.amount}, peer,
                            operation.address, memory_of(operation));
    case GoalOperationKind::receive:
      return messages_.receive(id, operation.cpu, earliest, number, peer, operation.tag, operation.address,
                               memory_of(operation));
    case GoalOperationKind::calc:
      break;
  }
  return messages_.compute(id, operation.cpu, earliest, number, Time::from_ns(operation.amount));
}

void GoalRanks::ended(ProcessId id, std::uint32_t operation, Time time, const Envelope& message) {
  Rank& rank = ranks_[id];
  const GoalOperation& done = rank.trace.operations[operation];
  if (done.kind == GoalOperationKind::receive && message.bytes > done.amount) ++jobs_[rank.job].truncated;
  rank.finish = std::max(rank.finish, time);
  if (log_ != nullptr) log_->ended[id][operation] = time;
  rank.is_ended[operation] = true;
  --rank.left;
  release(id, operation, time, false);
}

void GoalRanks::release(ProcessId id, std::uint32_t operation, Time time, bool on_start) {
  Rank& rank = ranks_[id];
  const GoalRank& trace = rank.trace;
  for (std::uint32_t s = trace.first_successor[operation]; s < trace.first_successor[operation + 1]; ++s) {
    const std::uint32_t successor = trace.successors[s];
    if (((successor & GoalRank::on_start) != 0) != on_start) continue;
    const std::uint32_t later = successor & ~GoalRank::on_start;
    if (!rank.earliest.empty()) rank.earliest[later] = std::max(rank.earliest[later], time);
    if (--rank.waits_for[later] == 0) rank.ready.push(later);
  }
}

JobReport GoalRanks::report_on(const Job& job) {
  const GoalSchedule& schedule = job.schedule;
  JobReport report;
  report.operations = schedule.operation_count();
  report.deadlock = describe_deadlock(job);
  for (std::size_t i = 0; i < schedule.ranks.size(); ++i)
    report.finish.push_back(ranks_[job.first_rank + i].finish - epoch_);
  if (job.truncated > 0) {
    report.warnings.push_back(std::to_string(job.truncated) +
                              " receives got a message longer than they say: it was taken whole");
  }
  if (messages_.capabilities().translates_addresses && schedule.receives_at_no_address > 0) {
    report.warnings.push_back(
        std::to_string(schedule.receives_at_no_address) +
        " receives name no buffer address (// @0x...): the card, which translates addresses, finds all their "
        "buffers on one page");
  }
  if (!has_gpu_ && schedule.buffers_in_gpu > 0) {
    report.warnings.push_back(std::to_string(schedule.buffers_in_gpu) +
                              " sends and receives name a buffer in the memory of a GPU, which the nodes of "
                              "this machine do not have: it was taken for host memory");
  }
  if (!schedule.nics.empty() && schedule.nics != std::set<std::uint16_t>{0})
    report.warnings.push_back(nics_warning(schedule));
  return report;
}

// For example: operations name the network interfaces 0 (rail first), 1 (rail ib).
std::string GoalRanks::nics_warning(const GoalSchedule& schedule) const {
  std::string names;
  for (const std::uint16_t nic : schedule.nics) {
    names += (names.empty() ? "" : ", ") + std::to_string(nic);
    if (rails_.size() > 1 && nic < rails_.size()) names += " (rail " + rails_[nic] + ")";
  }
  const bool is_several = schedule.nics.size() > 1;
  return "operations name the network " + std::string(is_several ? "interfaces " : "interface ") + names +
         ": all messages went by one card of their node" +
         (rails_.size() > 1 ? ", that of rail " + rails_.front() + "; --rail chooses another" : "");
}

std::string GoalRanks::describe_deadlock(const Job& job) {
  constexpr std::size_t most_shown = 8;
  const std::size_t count = job.schedule.ranks.size();
  std::vector<std::string> lines;
  std::size_t stuck = 0;
  for (ProcessId rank = 0; rank < count; ++rank) {
    std::string waiting = describe_waiting(job.first_rank + rank);
    if (waiting.empty()) continue;
    if (stuck++ < most_shown) lines.push_back("  rank " + std::to_string(rank) + " " + waiting);
  }
  if (stuck == 0) return {};
  std::string text = job.schedule.file + ": " + std::to_string(stuck) + " of " + std::to_string(count) +
                     " ranks do not come to their end:";
  for (const std::string& line : lines) text += "\n" + line;
  if (stuck > most_shown) text += "\n  and " + std::to_string(stuck - most_shown) + " ranks more";
  return text;
}

// Names the first operation that has started and not ended, and the oldest message that was not received.
std::string GoalRanks::describe_waiting(ProcessId id) {
  const Rank& rank = ranks_[id];
  const GoalRank& trace = rank.trace;
  std::string text;
  for (std::uint32_t i = 0; rank.left > 0 && i < trace.operations.size(); ++i) {
    if (rank.is_ended[i] || rank.waits_for[i] > 0) continue;
    text = "waits for ever in line " + std::to_string(trace.operations[i].line) + ": " +
           to_text(trace.operations[i]) + "; " + std::to_string(rank.left) + " operations have not ended";
    break;
  }
  Envelope message;
  if (messages_.unreceived(id, message)) {
    text += (text.empty() ? "has not received the message of " : "; it has not received the message of ") +
            std::to_string(message.bytes) + " bytes, tag " + std::to_string(message.tag) + ", from rank " +
            std::to_string(message.source - jobs_[rank.job].first_rank);
  }
  return text;
}

}  // namespace apenet
