// MessagePassing: ranks that send and receive as an MPI library over the libfabric provider does, without any
// process: each has a message engine, as a process has.
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
#include "runtime/scripted/rank_port.hpp"

namespace apenet {

inline constexpr std::uint32_t any_rank = message::any_source;
inline constexpr std::uint32_t any_tag = 0xffffffff;

// Where the clocks of ranks stop: 104 days, as those of real processes (runtime/ipc/protocol.hpp).
inline constexpr Time end_of_time = Time::from_ps(9'000'000'000'000'000'000);

// A message as its receiver sees it.
struct Envelope {
  ProcessId source = 0;
  std::uint32_t tag = 0;
  std::int64_t bytes = 0;
};

// Who decides what the ranks do.
class RankProgram {
 public:
  virtual ~RankProgram() = default;
  // Starts everything that `rank` can do now. Called for every rank at the begin, and again whenever
  // something of the rank has ended.
  virtual void proceed(ProcessId rank) = 0;
  // An operation of `rank`, by its own number, has ended at `time`. Called within send() and receive() too.
  // Starts nothing: proceed() follows.
  virtual void ended(ProcessId rank, std::uint32_t operation, Time time, const Envelope& message) = 0;
};

// What a rank did; times of its first CPU.
struct RankActivity {
  Time computed;
  Time waited;  // for the network
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;
  std::uint64_t sent_bytes = 0;
};

// What all ranks and the machine did.
struct RanksReport {
  std::vector<RankActivity> ranks;
  std::uint64_t messages = 0;  // posted to the cards, those of the protocols included
  std::uint64_t bytes = 0;     // of these
  std::uint64_t trace_hash = 0;
  std::vector<LinkUse> links;
  FaultUse faults;
  std::optional<NetworkHistory> network;
  std::vector<std::string> warnings;
};

// A rank's CPU does what the program starts in the order in which it starts it, ahead of the simulation, and
// takes arrivals in their order when nothing can be started. A rank may have several CPUs, each with its own
// clock; the steps of a message are done by the CPU of its operation.
class MessagePassing final : private CompletionSink, private EventHandler {
 public:
  // cpus[r]: CPUs of rank r, at least one. Throws std::invalid_argument as Machine does.
  MessagePassing(const MachineDescription& description, std::vector<NodeId> node_of_rank,
                 const std::vector<std::uint16_t>& cpus, RankProgram& program,
                 const ObservationOptions& observed = {});

  // Each begins when the CPU is free, and not before `earliest`, and returns when it began. `address`: of the
  // buffer in the rank's memory, for cards that translate it; 0 where that is not known.
  Time compute(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation, Time span);
  Time send(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
            const Envelope& message, ProcessId target, std::uint64_t address = 0);
  Time receive(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation, ProcessId source,
               std::uint32_t tag, std::uint64_t address = 0);

  // From time zero until nothing happens any more.
  void run();

  [[nodiscard]] std::uint32_t rank_count() const { return machine_.process_count(); }
  // When the rank's first CPU has done what it has to do so far.
  [[nodiscard]] Time clock(ProcessId rank) const { return ranks_[rank].port.clock(0); }
  [[nodiscard]] RanksReport report();
  // A message to `rank` that nobody has received; false when there is none.
  [[nodiscard]] bool unreceived(ProcessId rank, Envelope& message);

  // For a rank's port.
  [[nodiscard]] const message::SoftwareCosts& costs() const { return costs_; }
  [[nodiscard]] const message::CardLimits& card() const { return card_; }
  [[nodiscard]] bool are_near(ProcessId one, ProcessId other) const {
    return machine_.node_of(one) == machine_.node_of(other);
  }
  [[nodiscard]] RankEngine& engine(ProcessId rank) { return ranks_[rank].engine; }
  [[nodiscard]] message::Inbox& inbox(ProcessId rank) { return ranks_[rank].inbox; }
  std::uint64_t post(ProcessId rank, const message::Request& request, Time when);
  void note_wait(ProcessId rank, Time from, Time until);
  void ended(ProcessId rank, std::uint32_t operation, const Envelope& message);

 private:
  struct Rank {
    Rank(MessagePassing& shared, RankEngine::Stores& stores, ProcessId id, std::uint16_t cpus)
        : port(shared, id, cpus), engine(port, stores) {}
    RankPort port;
    message::Inbox inbox{0};
    RankEngine engine;
    RankActivity activity;
  };
  // A descriptor from its post to its last completion. Its index is the low half of its number.
  struct Flight {
    ProcessId source = 0;
    ProcessId target = 0;
    std::int64_t bytes = 0;
    std::uint64_t immediate = 0;
    message::RequestVerb verb = message::RequestVerb::send;
    std::uint8_t completions_due = 0;
    std::uint32_t inline_length = 0;
    std::byte inline_data[message::control_bytes];  // of a send: header, and body of a control message
  };

  void complete(const Completion& completion) override;
  void land(ProcessId /*source*/, std::uint64_t /*message*/) override {}
  void handle_event(const Event& event) override;

  [[nodiscard]] std::uint32_t add_flight(ProcessId rank, const message::Request& request);
  [[nodiscard]] message::Event event_of(const Completion& completion);
  void post_in_turn(const Descriptor& descriptor, Time when);
  void number_in_turn(const Descriptor& descriptor);

  Simulation simulation_;
  Machine machine_;
  Observation observation_;
  RankProgram& program_;
  message::SoftwareCosts costs_;
  message::CardLimits card_;
  Time packet_interval_;
  RankEngine::Stores stores_;
  std::deque<Rank> ranks_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_flights_;
  std::uint64_t descriptors_ = 0;
  // Posts of a rank with several CPUs, whose clocks overtake each other, until their time has come; only then
  // do its messages have their order.
  std::vector<Descriptor> delayed_;
  std::vector<std::uint32_t> free_delayed_;
  std::unordered_map<std::uint64_t, std::uint32_t> next_sequence_;  // of (source, target); only looked up
  std::vector<EventSource> sources_;
  TraceHash hash_;
};

}  // namespace apenet
