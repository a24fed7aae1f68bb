#include "runtime/scripted/rank_transport.hpp"

#include "message/engine_events.hpp"
#include "runtime/scripted/message_passing.hpp"

template class apenet::message::Engine<apenet::RankTransport>;

namespace apenet {

static_assert(message::Transport<RankTransport>);

void RankTransport::begin(Time now) {
  for (RankCpu& one : cpus_) one.clock = now;
}

void RankTransport::begin_event(Time time) {
  event_time_ = time;
  takes_event_ = true;
  works_ = false;
}

// The first CPU takes an event that belongs to no operation.
void RankTransport::end_event() {
  if (!works_) works_for({});
  takes_event_ = false;
}

void RankTransport::works_for(const message::Owner& owner) {
  cpu_ = owner.cpu;
  operation_ = owner.number;
  works_ = true;
  RankCpu& chosen = cpus_[cpu_];
  if (!takes_event_ || event_time_ <= chosen.clock) return;
  if (cpu_ == 0) shared_.note_wait(id_, chosen.clock, event_time_);
  chosen.clock = event_time_;
}

void RankTransport::poll() {
  for (RankCpu& one : cpus_) one.charge_deferred();
  cpu_ = 0;
  shared_.engine(id_).give_rings_back();
}

const message::SoftwareCosts& RankTransport::costs(std::uint8_t /*rail*/) const {
  return shared_.costs();
}

const message::CardLimits& RankTransport::card(std::uint8_t /*rail*/) const {
  return shared_.card();
}

std::uint32_t RankTransport::rank_count() const {
  return shared_.rank_count();
}

bool RankTransport::is_same_node(std::uint32_t rank) const {
  return shared_.are_near(id_, rank);
}

std::uint64_t RankTransport::post(message::Request& request) {
  return shared_.post(id_, request, cpus_[cpu_].clock);
}

message::Inbox* RankTransport::inbox(std::uint16_t /*number*/) {
  return &shared_.inbox(id_);
}

void RankTransport::received(const message::Receive& receive, bool /*ends_multi*/) {
  shared_.ended(
      id_, receive.owner.number,
      {receive.source, static_cast<std::uint32_t>(receive.tag), static_cast<std::int64_t>(receive.length)});
}

void RankTransport::ended(const message::Transfer& transfer) {
  shared_.ended(
      id_, transfer.owner.number,
      {id_, static_cast<std::uint32_t>(transfer.tag), static_cast<std::int64_t>(transfer.buffer.length)});
}

}  // namespace apenet
