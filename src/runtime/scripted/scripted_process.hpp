// ScriptedProcess: a program as a coroutine, so that tests and benchmarks need no processes of the system.
#pragma once

#include <coroutine>
#include <cstdint>
#include <limits>
#include <string>

#include "kernel/queue_pool.hpp"
#include "kernel/time.hpp"
#include "machine/machine.hpp"
#include "runtime/scripted/script.hpp"

namespace apenet {

// How a message is asked for, beside its target and size: the fields of Descriptor.
struct PostOptions {
  std::uint16_t channel = 0;
  bool from_cpu = false;
  bool want_local = false;
  bool want_remote = false;
  bool notify_target = true;
  Memory local_memory = Memory::host;
  Memory remote_memory = Memory::host;
  std::uint64_t local_address = 0;
  std::uint64_t remote_address = 0;
};

// One process over the card. It has its own clock and runs ahead of the simulation until it waits; the work
// of its CPU is serial and is charged to the clock from a SoftwareDescription, as the runtime of real
// processes does:
//
// - send: before a descriptor is posted; send_packet: after it, for each further packet that the library
//   writes;
// - receive: when an arrival is taken, after it was visible, and receive_packet for each of its further
//   packets;
// - after_receive: a debt from then on, paid when the process next waits for anything. In a ping-pong it is
//   paid while the reply is under way, in a stream of messages it is in the way of the next one. Over a card
//   that needs credit: when credit is given instead (expect);
// - completion: when a local completion is taken.
//
// The state comes in the order of its use: what a completion needs that is not waited for is one cache line.
class alignas(64) ScriptedProcess {
 public:
  // What the processes of a run share.
  struct Shared {
    Machine& machine;
    SoftwareDescription software;
    QueuePool<Completion> inboxes = {};
  };
  // `shared` outlives it.
  ScriptedProcess(ProcessId id, Shared& shared) : shared_(shared), id_(id) {}
  ScriptedProcess(const ScriptedProcess&) = delete;
  ScriptedProcess& operator=(const ScriptedProcess&) = delete;

  [[nodiscard]] ProcessId id() const { return id_; }
  [[nodiscard]] Time clock() const { return clock_; }

  void compute(Time span) { clock_ += span; }
  void copy(std::int64_t bytes);      // by the CPU, from memory to memory
  void copy_gpu(std::int64_t bytes);  // between the GPU and the host's memory; the CPU waits for it
  // Each returns the message's number, by which its completions are waited for. A send beyond what the card
  // sends is a put to where the target has agreed to: it arrives there the same way.
  std::uint64_t send(ProcessId target, std::int64_t bytes, const PostOptions& options = {});
  std::uint64_t put(ProcessId target, std::int64_t bytes, const PostOptions& options = {});
  std::uint64_t get(ProcessId target, std::int64_t bytes, const PostOptions& options = {});
  // Will receive a message of that size. Gives credit for it where the card needs it, is nothing elsewhere.
  void expect(ProcessId source, std::int64_t bytes, std::uint16_t channel = 0);

  // What a process waits for: an arrival (of any source, or of one), or the completion of a message.
  struct Wish {
    static constexpr std::uint64_t any_message = std::numeric_limits<std::uint64_t>::max();
    static constexpr ProcessId any_source = std::numeric_limits<ProcessId>::max();
    std::uint64_t message = any_message;  // of a local completion, or with its source of an arrival
    ProcessId source = any_source;        // of an arrival
    Completion::Kind kind = Completion::Kind::arrived;
    [[nodiscard]] bool is_met_by(const Completion& completion) const {
      return completion.kind == kind && (source == any_source || completion.source == source) &&
             (message == any_message || completion.message == message);
    }
    [[nodiscard]] std::string description() const;
  };
  class Wait {
   public:
    Wait(ScriptedProcess& process, Wish wish) : process_(process), wish_(wish) {}
    bool await_ready() { return process_.take(wish_); }
    void await_suspend(std::coroutine_handle<> script) { process_.suspend(wish_, script); }
    Completion await_resume() { return process_.taken_; }

   private:
    ScriptedProcess& process_;
    Wish wish_;
  };
  // co_await process.arrival(): the earliest that has not been taken.
  [[nodiscard]] Wait arrival() { return {*this, {}}; }
  [[nodiscard]] Wait arrival_from(ProcessId source) { return {*this, {.source = source}}; }
  // The arrival of a certain message of a process.
  [[nodiscard]] Wait arrival_of(ProcessId source, std::uint64_t message) {
    return {*this, {.message = message, .source = source}};
  }
  [[nodiscard]] Wait completion(Completion::Kind kind, std::uint64_t message) {
    return {*this, {.message = message, .kind = kind}};
  }

  // For the run.
  [[nodiscard]] bool is_waiting_for(const Completion& completion) const {
    return script_ && wish_.is_met_by(completion);
  }
  void complete(const Completion& completion);
  // Empty when it waits for nothing.
  [[nodiscard]] std::string waits_for() const;

 private:
  std::uint64_t post(Verb verb, ProcessId target, std::int64_t bytes, const PostOptions& options);
  bool take(const Wish& wish);
  void suspend(const Wish& wish, std::coroutine_handle<> script);
  void charge(const Completion& completion);
  [[nodiscard]] Time receive_time(const Completion& arrival) const;

  Wish wish_;                           // while the script waits
  std::coroutine_handle<> script_;      // that waits
  QueuePool<Completion>::Queue inbox_;  // in the order of their times
  Time clock_;
  Time debt_;
  Shared& shared_;
  Completion taken_;
  std::uint64_t next_message_ = 0;
  ProcessId id_;
};

}  // namespace apenet
