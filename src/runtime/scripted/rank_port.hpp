// RankPort: what a rank without a process is to its message engine: CPUs with clocks, and a card.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/time.hpp"
#include "message/engine.hpp"
#include "nic/nic.hpp"

namespace apenet {

class MessagePassing;

// Its CPUs do what the program starts, ahead of the simulation; what an operation's messages cost is charged
// to the CPU of the operation. An event is taken when it comes; like a process, the rank looks for the next
// one when it has nothing to start, and then pays what it has put off.
class RankPort {
 public:
  static constexpr bool moves_bytes = false;

  // `shared` outlives it.
  RankPort(MessagePassing& shared, ProcessId id, std::uint16_t cpus)
      : shared_(shared), id_(id), cpus_(cpus) {}

  [[nodiscard]] std::size_t cpu_count() const { return cpus_.size(); }
  [[nodiscard]] Time clock(std::uint16_t cpu) const { return cpus_[cpu].clock; }
  void advance(std::uint16_t cpu, Time to) { cpus_[cpu].clock = std::max(cpus_[cpu].clock, to); }
  [[nodiscard]] std::uint16_t cpu() const { return cpu_; }  // that works now

  // Around an event.
  void begin_event(Time time);
  void end_event();
  void look();

  // See message::Port.
  [[nodiscard]] const message::SoftwareCosts& costs() const;
  [[nodiscard]] const message::CardLimits& card() const;
  [[nodiscard]] std::uint32_t rank_count() const;
  [[nodiscard]] bool is_near(std::uint32_t rank) const;
  void charge(std::int64_t ps) { cpus_[cpu_].clock += Time::from_ps(ps); }
  void charge_later(std::int64_t ps) { cpus_[cpu_].debt += Time::from_ps(ps); }
  void works_for(const message::Owner& owner);
  std::uint64_t post(message::Request& request);
  [[nodiscard]] std::byte* take_slot(message::Request& /*request*/, std::size_t /*bytes*/) { return nullptr; }
  [[nodiscard]] const std::byte* slot_of(const message::Event& /*event*/) { return nullptr; }
  void return_slot(const message::Message& /*message*/) {}
  [[nodiscard]] message::Inbox* inbox(std::uint16_t number);
  void matched(const message::Receive& /*receive*/, const message::Message& /*message*/) {}
  void received(const message::Receive& receive, bool ends_multi);
  void ended(const message::Transfer& transfer);
  // Replayed ranks pass messages only.
  void written(message::Inbox* /*inbox*/, const message::Event& /*event*/,
               const message::PutNotice& /*notice*/) {}
  void was_read(message::Inbox* /*inbox*/, const message::Message& /*message*/) {}
  void control_arrived(message::Inbox* /*inbox*/, const message::Message& /*message*/) {}

 private:
  struct Cpu {
    Time clock;
    Time debt;  // paid when the rank next looks
  };

  MessagePassing& shared_;
  ProcessId id_;
  std::uint16_t cpu_ = 0;
  bool takes_event_ = false;
  bool works_ = false;  // somebody has taken the event
  Time event_time_;
  std::vector<Cpu> cpus_;
};

using RankEngine = message::Engine<RankPort>;

}  // namespace apenet

extern template class apenet::message::Engine<apenet::RankPort>;
