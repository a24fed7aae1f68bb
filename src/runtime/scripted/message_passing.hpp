// MessagePassing: ranks that send and receive as an MPI library over the libfabric provider does, without any
// process: the same protocols, the same descriptors, the same costs of software.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/simulation.hpp"
#include "kernel/trace.hpp"
#include "machine/machine.hpp"
#include "runtime/observe/observation.hpp"
#include "runtime/scripted/message_matching.hpp"

namespace apenet {

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

// The protocols are those of docs/apis/libfabric.md, charged from description.mpi_software: eager up to the
// limit, rendezvous by put above it. A rank's CPU does what the program starts in the order in which it
// starts it, ahead of the simulation, and takes arrivals in their order when nothing can be started; one that
// no receive wants waits, and costs when it is wanted. A rank may have several CPUs, each with its own clock;
// the steps of a message are done by the CPU of its operation.
class MessagePassing final : private CompletionSink, private EventHandler {
 public:
  // cpus[r]: CPUs of rank r, at least one. Throws std::invalid_argument as Machine does.
  MessagePassing(const MachineDescription& description, std::vector<NodeId> node_of_rank,
                 const std::vector<std::uint16_t>& cpus, RankProgram& program,
                 const ObservationOptions& observed = {});

  // Each begins when the CPU is free, and not before `earliest`, and returns when it began.
  Time compute(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation, Time span);
  Time send(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
            const Envelope& message, ProcessId target);
  Time receive(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation, ProcessId source,
               std::uint32_t tag);

  // From time zero until nothing happens any more.
  void run();

  [[nodiscard]] std::uint32_t rank_count() const { return machine_.process_count(); }
  // When the rank's first CPU has done what it has to do so far.
  [[nodiscard]] Time clock(ProcessId rank) const { return cpus_[first_cpu_[rank]].clock; }
  [[nodiscard]] RanksReport report();
  // A message to `rank` that nobody has received; false when there is none.
  [[nodiscard]] bool unreceived(ProcessId rank, Envelope& message) const;

 private:
  enum class Phase : std::uint8_t { eager, ready, clear, put };
  // From the send to the last completion. Its number is the low half of its descriptors' numbers.
  struct Message {
    ProcessId source = 0;
    ProcessId target = 0;
    std::int64_t bytes = 0;
    std::uint32_t tag = 0;
    std::uint32_t send_operation = 0;
    std::uint32_t receive_operation = 0;
    std::uint32_t sequence = 0;  // of what is under way, among all from its sender to its receiver
    std::uint32_t parts_unsent = 0;
    std::uint32_t parts_unarrived = 0;
    std::uint32_t mailbox_packets = 0;  // in which what is under way came
    std::uint16_t send_cpu = 0;
    std::uint16_t receive_cpu = 0;
    Phase phase = Phase::eager;
  };
  struct Cpu {
    Time clock;
    Time debt;  // after_receive, paid before the next arrival is taken
  };
  // The conversation of two ranks, one direction: a library takes messages in the order in which they were
  // sent, whatever the network does.
  struct Pair {
    std::uint32_t next_out = 0;
    std::uint32_t next_in = 0;
    std::vector<std::uint32_t> held;  // came before their turn
  };

  void complete(const Completion& completion) override;
  void land(ProcessId /*source*/, std::uint64_t /*message*/) override {}
  void handle_event(const Event& event) override;

  void handle(const Completion& completion);
  void take_in_turn(ProcessId rank, std::uint32_t number, Time time);
  void deliver(ProcessId rank, std::uint32_t number, Time time);
  void consume(std::uint32_t number, const PostedReceive& receive);
  void cleared(std::uint32_t number);
  void put_reported(std::uint32_t number, Completion::Kind kind);
  void post(Cpu& cpu, ProcessId from, std::uint32_t number, Verb verb, std::int64_t bytes);
  void hand_over(const Descriptor& descriptor, Time when);
  void give_credit(ProcessId receiver, std::uint16_t cpu, ProcessId sender, std::int64_t bytes);
  void hand_over_at(const Descriptor& descriptor, Time when);
  [[nodiscard]] static std::int64_t wire_bytes(const Message& message);  // of what is under way but for puts
  void post_control(Cpu& cpu, ProcessId from, std::uint32_t number, std::int64_t bytes);
  void post_send(Cpu& cpu, ProcessId from, std::uint32_t number, std::int64_t bytes);
  void charge_receive(Cpu& cpu, const Message& message) const;
  void charge_copy(Cpu& cpu, std::int64_t bytes) const;
  Cpu& begin(ProcessId rank, std::uint16_t cpu, Time earliest);
  Cpu& cpu_at(ProcessId rank, std::uint16_t cpu, Time time);  // ready to take what came at `time`
  Pair& pair(ProcessId from, ProcessId to) { return pairs_[std::uint64_t{from} << 32 | to]; }
  std::uint32_t add(const Message& message);
  [[nodiscard]] std::uint32_t cpu_count(ProcessId rank) const {
    return first_cpu_[rank + 1] - first_cpu_[rank];
  }

  Simulation simulation_;
  Machine machine_;
  Observation observation_;
  RankProgram& program_;
  SoftwareDescription software_;
  DataRate copy_rate_;
  NicCapabilities card_;
  std::int64_t eager_limit_bytes_;
  std::vector<RankActivity> ranks_;
  std::vector<Cpu> cpus_;
  std::vector<std::uint32_t> first_cpu_;  // of each rank, in cpus_
  MessageMatching matching_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::unordered_map<std::uint64_t, Pair> pairs_;  // looked up, never walked through
  std::uint64_t descriptors_ = 0;
  // Posts of a rank with several CPUs, whose clocks overtake each other, until their time has come.
  std::vector<Descriptor> delayed_;
  std::vector<std::uint32_t> free_delayed_;
  std::vector<EventSource> sources_;
  TraceHash hash_;
};

}  // namespace apenet
