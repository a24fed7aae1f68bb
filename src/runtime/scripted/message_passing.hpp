// MessagePassing: ranks without processes that send and receive like an MPI library over the libfabric
// provider. Each rank has a message engine.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/simulation.hpp"
#include "kernel/trace.hpp"
#include "machine/machine.hpp"
#include "runtime/observe/observation.hpp"
#include "runtime/scripted/rank_transport.hpp"
#include "runtime/scripted/replay_log.hpp"
#include "runtime/scripted/stage_log.hpp"

namespace apenet {

inline constexpr std::uint32_t any_rank = message::any_source;
inline constexpr std::uint32_t any_tag = 0xffffffff;

// The limit of the ranks' clocks: 104 days, as for real processes (runtime/ipc/protocol.hpp).

// A message as the receiver sees it.
struct Envelope {
  ProcessId source = 0;
  std::uint32_t tag = 0;
  std::int64_t bytes = 0;
};

// Decides what the ranks do.
class RankProgram {
 public:
  virtual ~RankProgram() = default;
  // Starts all operations of `rank` that can start now. Called for each rank at the beginning, and whenever
  // an operation of the rank may have ended. Returns whether the program goes on; a rank whose program has
  // ended polls no more, like a process that has left.
  virtual bool proceed(ProcessId rank) = 0;
  // The operation of `rank` with this number has ended at `time`. May be called within send() and receive().
  // Must not start an operation; proceed() follows.
  virtual void ended(ProcessId rank, std::uint32_t operation, Time time, const Envelope& message) = 0;
};

// Activity of a rank. Times are those of its first CPU.
struct RankActivity {
  Time computed;
  Time waited;  // for the network
  std::uint64_t sends = 0;
  std::uint64_t sent_bytes = 0;
};

struct RankTotals {
  std::vector<RankActivity> ranks;
  std::uint64_t messages = 0;  // posted to the cards, including protocol messages
  std::uint64_t bytes = 0;     // sum over these messages
  std::uint64_t trace_hash = 0;
};

// Its ranks are consecutive processes of a machine, the completions of which it takes; a rank's number counts
// from the first. A rank's CPU executes operations in the order in which the program starts them, ahead of
// the simulation. When no operation can start, it takes arrivals in order. A rank may have several CPUs, each
// with its own clock. The CPU of an operation executes the steps of its message.
class MessagePassing final : public CompletionSink, private EventHandler {
 public:
  // `first`: the process of rank 0. cpus[r]: number of CPUs of rank r, at least one. All must outlive it.
  // Throws std::invalid_argument for a machine whose first card cannot carry the protocol's messages.
  MessagePassing(Simulation& simulation, Machine& machine, ProcessId first,
                 const std::vector<std::uint16_t>& cpus, RankProgram& program);
  ~MessagePassing() = default;
  MessagePassing(const MessagePassing&) = delete;
  MessagePassing& operator=(const MessagePassing&) = delete;

  // Each begins when the CPU is free, but not before `earliest`, and returns the time at which it began.
  // `address`: of the buffer in the rank's memory, for cards that translate addresses; 0 if unknown.
  // `memory`: which it is; Memory::gpu requires a node with a GPU.
  Time compute(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation, Time span);
  Time send(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
            const Envelope& message, ProcessId target, std::uint64_t address = 0,
            Memory memory = Memory::host);
  Time receive(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation, ProcessId source,
               std::uint32_t tag, std::uint64_t address = 0, Memory memory = Memory::host);

  // Lists the waits in `log`, which must outlive the run. Call before it. The ranks must be the machine's
  // only processes.
  void log_waits(ReplayLog& log, Observation& observation);

  // Starts the ranks, whose clocks are at `now`.
  void begin(Time now);

  // For the machine.
  void complete(const Completion& completion) override;
  // The ranks have no memory: no bytes are moved.
  void deliver_payload(ProcessId /*source*/, std::uint64_t /*message*/) override {}

  [[nodiscard]] std::uint32_t rank_count() const { return static_cast<std::uint32_t>(ranks_.size()); }
  [[nodiscard]] const NicCapabilities& capabilities() const { return machine_.capabilities(); }
  // The clock of the rank's first CPU.
  [[nodiscard]] Time clock(ProcessId rank) const { return ranks_[rank].transport.clock(0); }
  [[nodiscard]] RankTotals totals() const;
  // Sets `message` to the oldest one that `rank` has not received. Returns false if there is none.
  [[nodiscard]] bool unreceived(ProcessId rank, Envelope& message);

  // Called by a rank's transport.
  [[nodiscard]] const message::SoftwareCosts& costs() const { return costs_; }
  [[nodiscard]] const message::CardLimits& card() const { return card_; }
  [[nodiscard]] bool are_near(ProcessId one, ProcessId other) const {
    return machine_.node_of(first_ + one) == machine_.node_of(first_ + other);
  }
  [[nodiscard]] RankEngine& engine(ProcessId rank) { return ranks_[rank].engine; }
  [[nodiscard]] message::Inbox& inbox(ProcessId rank) { return ranks_[rank].inbox; }
  std::uint64_t post(ProcessId rank, const message::Request& request, Time when);
  void note_wait(ProcessId rank, Time from, Time until);
  void ended(ProcessId rank, std::uint32_t operation, const Envelope& message);

 private:
  struct Rank {
    Rank(MessagePassing& shared, RankEngine::Stores& stores, ProcessId id, std::uint16_t cpus)
        : transport(shared, id, cpus), engine(transport, stores) {}
    RankTransport transport;
    message::Inbox inbox{0};
    RankEngine engine;
    RankActivity activity;
  };
  // A descriptor from its post to its last completion. Its index is the low half of its number.
  struct Pending {
    ProcessId source = 0;  // ranks
    ProcessId target = 0;
    std::int64_t bytes = 0;
    std::uint64_t immediate = 0;
    Time posted;
    std::uint32_t operation = 0;  // number at the source
    message::RequestVerb verb = message::RequestVerb::send;
    std::uint8_t completions_due = 0;
    std::uint32_t inline_length = 0;
    std::byte inline_data[message::control_bytes];  // send: the header, and the body of a control message
  };

  void handle_event(const Event& event) override;

  [[nodiscard]] std::uint32_t add_pending(ProcessId rank, const message::Request& request);
  [[nodiscard]] message::Event event_of(const Completion& completion);
  void log_cause(const Completion& completion, const Pending& pending);
  void log_stages();
  void post_in_turn(const Descriptor& descriptor, Time when);
  void number_in_turn(const Descriptor& descriptor);

  Simulation& simulation_;
  Machine& machine_;
  ProcessId first_;
  RankProgram& program_;
  message::SoftwareCosts costs_;
  message::CardLimits card_;
  Time packet_interval_;
  RankEngine::Stores stores_;
  std::deque<Rank> ranks_;
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> free_pending_;
  std::uint64_t descriptors_ = 0;
  std::uint64_t posted_messages_ = 0;
  std::uint64_t posted_bytes_ = 0;
  Time epoch_;
  // Posts of ranks with several CPUs, until their time has come. The clocks of the CPUs overtake each other,
  // so the order of the rank's messages is known only then.
  std::vector<Descriptor> delayed_;
  std::vector<std::uint32_t> free_delayed_;
  std::unordered_map<std::uint64_t, std::uint32_t> next_sequence_;  // by (source, target); never iterated
  std::vector<EventSource> sources_;
  TraceHash hash_;
  ReplayLog* log_ = nullptr;
  WaitRecord cause_;  // the cause of waits that end with the present completion
  StageLog stages_;
  std::vector<StageLog::Mark> cause_marks_;  // what its message did
};

}  // namespace apenet
