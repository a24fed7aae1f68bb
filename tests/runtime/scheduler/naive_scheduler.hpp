// NaiveScheduler: the specification of the scheduler. Grants one rank at a time, the one that acts first, and
// tells it nothing of what comes after its own time.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "machine/machine.hpp"
#include "machine/message_requests.hpp"
#include "toy_rank.hpp"

namespace apenet::test {

class NaiveScheduler final : public CompletionSink {
 public:
  NaiveScheduler(const MachineDescription& description, std::vector<NodeId> nodes,
                 std::vector<ToyRank>& ranks)
      : machine_(simulation_, description, std::move(nodes)), ranks_(ranks), events_(ranks.size()) {
    machine_.set_sink(*this);
  }

  // Returns whether all ranks have left.
  bool run() {
    begin();
    for (;;) {
      const std::size_t first = first_to_act();
      const std::int64_t acts_ps = first < ranks_.size() ? acts(ranks_[first]) : never;
      const std::int64_t post_ps = posted_.empty() ? never : posted_.front().first.time_ps;
      const std::int64_t model_ps = simulation_.next_time().ps();
      if (model_ps < post_ps && model_ps <= acts_ps) {
        simulation_.step();
      } else if (post_ps < acts_ps) {
        post_first();
      } else if (acts_ps != never) {
        let_act(ranks_[first]);
      } else if (!release()) {
        return std::all_of(ranks_.begin(), ranks_.end(), has_left);
      }
    }
  }
  [[nodiscard]] std::uint64_t trace_hash() const { return hash_.value(); }

  void complete(const Completion& completion) override {
    const auto& [request, rank] = sent_[completion.message];
    hash_.record(
        completion_record(completion, Time::from_ps(epoch_ps_), rank, request.target, request.bytes));
    ipc::Event event;
    event.time_ps = completion.time.ps();
    event.kind = event_kind(completion.kind, request.verb);
    event.source = rank;
    event.message = request.message;
    events_[completion.process].push_back(event);
  }
  void deliver_payload(ProcessId /*source*/, std::uint64_t /*message*/) override {}

 private:
  static constexpr std::int64_t never = Time::never().ps();

  struct NaivePort final : Port {
    NaivePort(NaiveScheduler& of, std::uint32_t of_rank) : naive(of), rank(of_rank) {}
    const ipc::Event* front() override {
      return naive.events_[rank].empty() ? nullptr : &naive.events_[rank].front();
    }
    void pop() override { naive.events_[rank].pop_front(); }
    void post(ipc::Request& request) override {
      // By time, rank and position.
      const auto place =
          std::upper_bound(naive.posted_.begin(), naive.posted_.end(), std::pair(request.time_ps, rank),
                           [](const auto& key, const auto& other) {
                             return key < std::pair(other.first.time_ps, other.second);
                           });
      naive.posted_.insert(place, {request, rank});
    }
    NaiveScheduler& naive;
    std::uint32_t rank;
  };

  static bool has_left(const ToyRank& rank) { return rank.died || rank.wait == ipc::Wait::finished; }

  void begin() {
    for (ToyRank& rank : ranks_) let_act(rank);
    for (const ToyRank& rank : ranks_) epoch_ps_ = std::max(epoch_ps_, rank.clock_ps);
    machine_.begin(Time::from_ps(epoch_ps_));
    for (ToyRank& rank : ranks_) {
      rank.clock_ps = epoch_ps_;
      rank.wait = ipc::Wait::flush;
    }
  }

  // The host ends the waits that it can end, all at once. Each rank has reached the time of the last event.
  bool release() {
    if (std::none_of(ranks_.begin(), ranks_.end(), std::mem_fn(&ToyRank::waits_outside))) return false;
    for (ToyRank& rank : ranks_) {
      if (has_left(rank)) continue;
      rank.clock_ps = std::max(rank.clock_ps, simulation_.now().ps());
    }
    for (ToyRank& rank : ranks_) {
      if (rank.waits_outside()) let_act(rank);
    }
    return true;
  }

  [[nodiscard]] std::int64_t acts(const ToyRank& rank) const {
    if (has_left(rank)) return never;
    if (rank.wait != ipc::Wait::for_event) return std::max(rank.clock_ps, rank.deadline_ps);
    std::int64_t first_ps = rank.deadline_ps == ToyRank::no_deadline ? never : rank.deadline_ps;
    if (!events_[rank.rank].empty()) first_ps = std::min(first_ps, events_[rank.rank].front().time_ps);
    return first_ps == never ? never : std::max(rank.clock_ps, first_ps);
  }

  [[nodiscard]] std::size_t first_to_act() const {
    std::size_t first = ranks_.size();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::int64_t acts_ps = acts(ranks_[rank]);
      if (acts_ps != never && (first == ranks_.size() || acts_ps < acts(ranks_[first]))) first = rank;
    }
    return first;
  }

  void let_act(ToyRank& rank) {
    rank.horizon_ps = std::numeric_limits<std::int64_t>::min();
    NaivePort port(*this, rank.rank);
    rank.run(port);
  }

  void post_first() {
    const auto [request, rank] = posted_.front();
    posted_.pop_front();
    Descriptor descriptor = descriptor_of(request, rank, request.target, machine_,
                                          machine_.description().mpi_software.send_packet);
    descriptor.message = sent_.size();
    sent_.emplace_back(request, rank);
    machine_.post(Time::from_ps(request.time_ps), descriptor);
  }

  Simulation simulation_{1};
  Machine machine_;
  std::vector<ToyRank>& ranks_;
  std::vector<std::deque<ipc::Event>> events_;
  std::deque<std::pair<ipc::Request, std::uint32_t>> posted_;
  std::vector<std::pair<ipc::Request, std::uint32_t>> sent_;
  std::int64_t epoch_ps_ = 0;
  TraceHash hash_;
};

}  // namespace apenet::test
