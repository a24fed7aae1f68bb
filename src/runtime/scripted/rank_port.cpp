#include "runtime/scripted/rank_port.hpp"

#include <utility>

#include "message/engine_events.hpp"
#include "runtime/scripted/message_passing.hpp"

template class apenet::message::Engine<apenet::RankPort>;

namespace apenet {

static_assert(message::Port<RankPort>);

void RankPort::begin_event(Time time) {
  event_time_ = time;
  takes_event_ = true;
  works_ = false;
}

// What no operation wants, the first CPU has taken.
void RankPort::end_event() {
  if (!works_) works_for({});
  takes_event_ = false;
}

void RankPort::works_for(const message::Owner& owner) {
  cpu_ = owner.cpu;
  works_ = true;
  Cpu& chosen = cpus_[cpu_];
  if (!takes_event_ || event_time_ <= chosen.clock) return;
  if (cpu_ == 0) shared_.note_wait(id_, chosen.clock, event_time_);
  chosen.clock = event_time_;
}

void RankPort::look() {
  for (Cpu& one : cpus_) one.clock += std::exchange(one.debt, Time::zero());
  cpu_ = 0;
  shared_.engine(id_).give_rings_back();
}

const message::SoftwareCosts& RankPort::costs() const {
  return shared_.costs();
}

const message::CardLimits& RankPort::card() const {
  return shared_.card();
}

std::uint32_t RankPort::rank_count() const {
  return shared_.rank_count();
}

bool RankPort::is_near(std::uint32_t rank) const {
  return shared_.are_near(id_, rank);
}

std::uint64_t RankPort::post(message::Request& request) {
  return shared_.post(id_, request, cpus_[cpu_].clock);
}

message::Inbox* RankPort::inbox(std::uint16_t /*number*/) {
  return &shared_.inbox(id_);
}

void RankPort::received(const message::Receive& receive, bool /*ends_multi*/) {
  shared_.ended(
      id_, receive.owner.number,
      {receive.source, static_cast<std::uint32_t>(receive.tag), static_cast<std::int64_t>(receive.length)});
}

void RankPort::ended(const message::Transfer& transfer) {
  shared_.ended(
      id_, transfer.owner.number,
      {id_, static_cast<std::uint32_t>(transfer.tag), static_cast<std::int64_t>(transfer.buffer.length)});
}

}  // namespace apenet
