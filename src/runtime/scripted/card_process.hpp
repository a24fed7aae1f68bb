// CardProcess: a process that uses its card directly. Its program is a coroutine, so that tests and
// benchmarks need no host processes.
#pragma once

#include <coroutine>
#include <cstdint>
#include <limits>
#include <string>

#include "kernel/queue_pool.hpp"
#include "kernel/time.hpp"
#include "machine/machine.hpp"
#include "runtime/scripted/rank_cpu.hpp"
#include "runtime/scripted/script.hpp"

namespace apenet {

// Posts descriptors and waits for completions: no message engine, no protocol. Its clock runs ahead of the
// simulation until it waits. The work of its CPU is serial and is charged to the clock from a
// message::SoftwareCosts, as for real processes:
//
// - send: before a descriptor is posted; send_packet: after it, for each further packet that the library
//   writes;
// - receive: when a visible arrival is taken; receive_packet: for each of its further packets;
// - after_receive: deferred until the process next waits. In a ping-pong this overlaps the reply; in a stream
//   of messages it delays the next one. With a card that needs credit, it is charged with the credit instead
//   (expect);
// - completion: when a local completion is taken.
//
// Members are ordered by use: a completion that the process does not wait for touches one cache line.
class alignas(64) CardProcess {
 public:
  // Continues a script at a time.
  struct Waker final : EventHandler {
    void handle_event(const Event& event) override;
  };
  // Shared by the processes of a run.
  struct Shared {
    Machine& machine;
    message::SoftwareCosts software;
    std::int64_t send_limit_bytes = 0;  // longer messages are puts
    Simulation& simulation;
    QueuePool<Completion> inboxes = {};
    Waker waker = {};
    const NicCapabilities& card = machine.capabilities();
  };
  // `shared` must outlive it.
  CardProcess(ProcessId id, Shared& shared) : shared_(shared), id_(id) {}
  CardProcess(const CardProcess&) = delete;
  CardProcess& operator=(const CardProcess&) = delete;

  [[nodiscard]] ProcessId id() const { return id_; }
  [[nodiscard]] Time clock() const { return cpu_.clock; }

  void compute(Time span) { cpu_.charge(span); }
  void copy(std::int64_t bytes);      // by the CPU, from memory to memory
  void copy_gpu(std::int64_t bytes);  // between GPU and host memory; the CPU waits
  // Returns the message's number, which identifies its completions. Sets source, number and packet_interval,
  // and from_cpu where the library cuts sends into packets and writes them.
  std::uint64_t post(Descriptor descriptor);
  // A message above the limit of the run is a put to memory that the target has agreed to, and arrives in the
  // same way.
  std::uint64_t send(ProcessId target, std::int64_t bytes) {
    return post({.verb = verb_of_send(bytes), .target = target, .bytes = bytes});
  }
  [[nodiscard]] Verb verb_of_send(std::int64_t bytes) const {
    return bytes <= shared_.send_limit_bytes ? Verb::send : Verb::put;
  }
  // Announces that the process will receive a message of this size. Gives credit if the card needs it; has no
  // effect otherwise.
  void expect(ProcessId source, std::int64_t bytes, std::uint16_t channel = 0) {
    if (shared_.card.needs_credit) give_credit(source, bytes, channel);
  }

  // An arrival (from any source or from one), or the completion of a message.
  struct WaitCondition {
    static constexpr std::uint64_t any_message = std::numeric_limits<std::uint64_t>::max();
    static constexpr ProcessId any_source = std::numeric_limits<ProcessId>::max();
    std::uint64_t message =
        any_message;                // the message of a local completion, or, with `source`, of an arrival
    ProcessId source = any_source;  // the sender of an arrival
    CompletionKind kind = CompletionKind::arrived;
    [[nodiscard]] bool is_met_by(const Completion& completion) const {
      return completion.kind == kind && (source == any_source || completion.source == source) &&
             (message == any_message || completion.message == message);
    }
    [[nodiscard]] std::string description() const;
  };
  class Wait {
   public:
    Wait(CardProcess& process, WaitCondition condition) : process_(process), condition_(condition) {}
    bool await_ready() { return process_.take(condition_); }
    void await_suspend(std::coroutine_handle<> script) { process_.suspend(condition_, script); }
    Completion await_resume() { return process_.taken_; }

   private:
    CardProcess& process_;
    WaitCondition condition_;
  };
  // co_await process.caught_up(): the simulation has reached the process's clock, so that take_arrival()
  // finds what has arrived by now.
  class CaughtUp {
   public:
    explicit CaughtUp(CardProcess& process) : process_(process) {}
    [[nodiscard]] bool await_ready() const;
    void await_suspend(std::coroutine_handle<> script);
    void await_resume() const {}

   private:
    CardProcess& process_;
  };
  [[nodiscard]] CaughtUp caught_up() { return CaughtUp{*this}; }
  // Takes the earliest arrival not yet taken. Returns false if there is none.
  bool take_arrival() { return take({}); }

  // co_await process.arrival(): the earliest arrival not yet taken.
  [[nodiscard]] Wait arrival() { return {*this, {}}; }
  [[nodiscard]] Wait arrival_from(ProcessId source) { return {*this, {.source = source}}; }
  // The arrival of one message of a process.
  [[nodiscard]] Wait arrival_of(ProcessId source, std::uint64_t message) {
    return {*this, {.message = message, .source = source}};
  }
  [[nodiscard]] Wait completion(CompletionKind kind, std::uint64_t message) {
    return {*this, {.message = message, .kind = kind}};
  }

  // Called by the run.
  [[nodiscard]] bool is_waiting_for(const Completion& completion) const {
    return script_ && condition_.is_met_by(completion);
  }
  void complete(const Completion& completion);
  // Empty if it waits for nothing.
  [[nodiscard]] std::string waits_for() const;

 private:
  void give_credit(ProcessId source, std::int64_t bytes, std::uint16_t channel);
  bool take(const WaitCondition& condition);
  void suspend(const WaitCondition& condition, std::coroutine_handle<> script);
  void charge(const Completion& completion);
  [[nodiscard]] Time receive_time(const Completion& arrival) const;

  WaitCondition condition_;             // while the script waits
  std::coroutine_handle<> script_;      // the waiting script
  QueuePool<Completion>::Queue inbox_;  // in the order of time
  RankCpu cpu_;
  Shared& shared_;
  Completion taken_;
  std::uint64_t next_message_ = 0;
  ProcessId id_;
};

}  // namespace apenet
