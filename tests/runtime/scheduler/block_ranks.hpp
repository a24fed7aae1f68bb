// BlockRanks: toy ranks on the scheduler itself. They use their blocks as processes do, in one thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/scheduler.hpp"
#include "toy_rank.hpp"

namespace apenet::test {

// How the host happens to behave. Nothing that a rank sees depends on it.
struct HostProperties {
  bool runs_last_first = false;     // among the ranks that are granted together
  bool computes_long = false;       // overlapped compute lasts until the grant
  bool ends_are_seen_late = false;  // a step later
  bool one_at_a_time = false;       // SchedulerOptions
  bool wakes_for_each_event = false;
};

class BlockRanks {
 public:
  BlockRanks(const MachineDescription& description, std::vector<NodeId> nodes, std::vector<ToyRank>& ranks,
             const HostProperties& properties)
      : ranks_(ranks),
        nodes_(std::move(nodes)),
        properties_(properties),
        machine_(simulation_, description, nodes_),
        shared_(static_cast<std::uint32_t>(ranks.size())),
        process_ids_(shared_),
        memory_(shared_, process_ids_),
        model_(simulation_, machine_),
        scheduler_(model_, shared_, memory_,
                   {.one_at_a_time = properties.one_at_a_time,
                    .wakes_for_each_event = properties.wakes_for_each_event}) {
    shared_.header().lookahead_ps = machine_.lookahead().ps();
  }

  // Returns whether all ranks have left.
  bool run() {
    run_granted();
    for (;;) {
      const Scheduler::Outcome outcome = step();
      if (outcome == Scheduler::Outcome::finished) return true;
      const bool any_ended = remove_ended();
      if (outcome == Scheduler::Outcome::idle && !any_ended) {
        if (std::none_of(ranks_.begin(), ranks_.end(), std::mem_fn(&ToyRank::waits_outside))) return false;
        scheduler_.release_idle([](std::uint32_t) { return false; });
      }
      run_granted();
    }
  }
  // Messages that nobody takes are under way when the last rank has left.
  std::uint64_t final_trace_hash() {
    simulation_.run();
    return scheduler_.view().delivery.trace_hash();
  }

  Scheduler::Outcome step() {
    model_.step();
    return scheduler_.outcome();
  }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] SchedulerView view() const { return scheduler_.view(); }
  [[nodiscard]] ipc::Block& block(std::uint32_t rank) { return shared_.block(rank); }
  [[nodiscard]] std::int64_t now_ps() const { return simulation_.now().ps(); }
  // Lets all ranks go on that are granted, until they wait.
  void run_granted() {
    std::vector<std::uint32_t> granted;
    std::set<NodeId> sharing;
    for (ToyRank& rank : ranks_) {
      if (!is_granted(rank)) continue;
      granted.push_back(rank.rank);
      // What they find in the memory would depend on their speed.
      if (view().ranks[rank.rank].shares_memory && !sharing.insert(nodes_[rank.rank]).second)
        throw std::logic_error("two ranks of a node that share memory run at a time");
    }
    if (properties_.runs_last_first) std::reverse(granted.begin(), granted.end());
    for (const std::uint32_t rank : granted) run(ranks_[rank]);
  }
  void run(ToyRank& rank);

 private:
  struct BlockPort final : Port {
    BlockPort(BlockRanks& of, ToyRank& of_rank)
        : rings(of.shared_.block(of_rank.rank).rings),
          rank(of_rank),
          lookahead_ps(of.machine_.lookahead().ps()) {}
    const ipc::Event* front() override {
      return rings.event_tail == rings.event_head ? nullptr
                                                  : &rings.events[rings.event_tail % ipc::event_ring];
    }
    void pop() override { ++rings.event_tail; }
    void post(ipc::Request& request) override {
      std::memcpy(static_cast<void*>(&rings.requests[rings.request_head++ % ipc::request_ring]), &request,
                  sizeof request);
      rank.horizon_ps = std::min(rank.horizon_ps, rank.clock_ps + lookahead_ps);
    }
    ipc::Rings& rings;
    ToyRank& rank;
    std::int64_t lookahead_ps;
  };

  [[nodiscard]] bool is_granted(const ToyRank& rank) {
    return !rank.died && rank.wait != ipc::Wait::finished &&
           shared_.block(rank.rank).grant.run.load() == ipc::Run::may_run;
  }
  // Returns whether there was any.
  bool remove_ended() {
    const std::vector<std::uint32_t> ended = std::exchange(ended_, {});
    for (const std::uint32_t rank : ended) scheduler_.remove(rank);
    return !ended.empty();
  }

  std::vector<ToyRank>& ranks_;
  std::vector<NodeId> nodes_;
  HostProperties properties_;
  Simulation simulation_{1};
  Machine machine_;
  SharedMemory shared_;
  ProcessIds process_ids_;
  ProcessMemory memory_;
  SharedModel model_;
  Scheduler scheduler_;
  std::vector<std::uint32_t> ended_;
};

inline void BlockRanks::run(ToyRank& rank) {
  ipc::Block& block = shared_.block(rank.rank);
  rank.clock_ps = block.clock.now_ps();
  rank.horizon_ps = block.clock.horizon_ps;
  BlockPort port(*this, rank);
  rank.run(port);
  block.clock.advance_to(rank.clock_ps);
  block.grant.shares_memory = rank.shares ? 1 : 0;
  block.grant.least_events = rank.least_events;
  block.grant.deadline_ps = rank.deadline_ps;
  const bool waits = rank.wait != ipc::Wait::running;
  if (waits) {
    block.grant.wait = rank.wait;
    const bool computes = rank.wait == ipc::Wait::computes && properties_.computes_long;
    if (rank.wait != ipc::Wait::finished) block.grant.run = computes ? ipc::Run::overlapped : ipc::Run::waits;
    shared_.running().count.fetch_sub(1);
  }
  if (!rank.died) return;
  if (waits && properties_.ends_are_seen_late) {
    ended_.push_back(rank.rank);
  } else {
    scheduler_.remove(rank.rank);
  }
}

}  // namespace apenet::test
