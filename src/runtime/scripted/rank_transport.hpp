// RankTransport: serves the message engine of a rank without a process: CPUs with clocks, and a card.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/time.hpp"
#include "message/engine.hpp"
#include "nic/nic.hpp"
#include "runtime/scripted/rank_cpu.hpp"

namespace apenet {

class MessagePassing;

// Its CPUs execute the program's operations ahead of the simulation. The cost of an operation's messages is
// charged to the operation's CPU. The rank takes an event when it arrives. Like a process, it polls for the
// next one when no operation can start, and then pays the deferred costs (defer_cost).
class RankTransport : public message::MessagesOnly {
 public:
  static constexpr bool moves_bytes = false;

  // `shared` must outlive it.
  RankTransport(MessagePassing& shared, ProcessId id, std::uint16_t cpus)
      : shared_(shared), id_(id), cpus_(cpus) {}

  [[nodiscard]] std::size_t cpu_count() const { return cpus_.size(); }
  [[nodiscard]] Time clock(std::uint16_t cpu) const { return cpus_[cpu].clock; }
  void advance(std::uint16_t cpu, Time to) { cpus_[cpu].advance(to); }
  [[nodiscard]] std::uint16_t cpu() const { return cpu_; }              // the CPU that works now
  [[nodiscard]] std::uint32_t operation() const { return operation_; }  // for which it works

  // Sets the clocks of the CPUs.
  void begin(Time now);
  // Call before and after the engine takes an event.
  void begin_event(Time time);
  void end_event();
  void poll();

  // See message::Transport. Scripted ranks use the first rail.
  [[nodiscard]] const message::SoftwareCosts& costs(std::uint8_t rail) const;
  [[nodiscard]] const message::CardLimits& card(std::uint8_t rail) const;
  [[nodiscard]] std::uint32_t rank_count() const;
  [[nodiscard]] bool is_same_node(std::uint32_t rank) const;
  void charge(Time time) { cpus_[cpu_].charge(time); }
  void defer_cost(Time time) { cpus_[cpu_].deferred_cost += time; }
  void works_for(const message::Owner& owner);
  std::uint64_t post(message::Request& request);
  [[nodiscard]] std::byte* take_slot(message::Request& /*request*/, std::size_t /*bytes*/) { return nullptr; }
  [[nodiscard]] bool frees_slots(std::uint32_t /*count*/) { return false; }
  [[nodiscard]] const std::byte* slot_of(const message::Event& /*event*/) { return nullptr; }
  void return_slot(const message::Message& /*message*/) {}
  [[nodiscard]] message::Inbox* inbox(std::uint16_t number);
  void received(const message::Receive& receive, bool ends_multi);
  void ended(const message::Transfer& transfer);

 private:
  MessagePassing& shared_;
  ProcessId id_;
  std::uint32_t operation_ = 0;
  std::uint16_t cpu_ = 0;
  bool takes_event_ = false;
  bool works_ = false;  // a CPU has taken the event
  Time event_time_;
  std::vector<RankCpu> cpus_;
};

using RankEngine = message::Engine<RankTransport>;

}  // namespace apenet

extern template class apenet::message::Engine<apenet::RankTransport>;
