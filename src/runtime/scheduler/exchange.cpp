#include "runtime/scheduler/exchange.hpp"

#include <algorithm>
#include <cstring>

namespace apenet {

validation::WaitReport Exchange::read_report(std::uint32_t rank) {
  End& end = ends_[rank];
  const validation::WaitReport report = validation::wait_report(rank, shared_.block(rank), end.clock_ps);
  end.clock_ps = report.clock_ps;
  return report;
}

std::int64_t Exchange::read_clock_ps(std::uint32_t rank) {
  End& end = ends_[rank];
  end.clock_ps = validation::clock_ps(rank, shared_.block(rank), end.clock_ps);
  return end.clock_ps;
}

std::int64_t Exchange::read_last_clock_ps(std::uint32_t rank) {
  End& end = ends_[rank];
  end.clock_ps = std::clamp(shared_.block(rank).clock.now_ps(), end.clock_ps, ipc::end_of_time_ps);
  return end.clock_ps;
}

void Exchange::advance_clock(std::uint32_t rank, std::int64_t to_ps) {
  End& end = ends_[rank];
  if (to_ps <= end.clock_ps) return;
  end.clock_ps = to_ps;
  end.posted_ps = std::max(end.posted_ps, to_ps);
  shared_.block(rank).clock.advance_to(to_ps);
}

std::uint32_t Exchange::begin_requests(std::uint32_t rank) {
  const std::uint32_t head = shared_.block(rank).rings.request_head;
  return validation::added(rank, "request_head", head, ends_[rank].request_tail, ipc::request_ring);
}

void Exchange::take_request(std::uint32_t rank) {
  End& end = ends_[rank];
  ipc::Rings& rings = shared_.block(rank).rings;
  const ipc::Request& shared = rings.requests[end.request_tail % ipc::request_ring];
  validation::request(rank, shared, end.posted_ps, end.clock_ps, size_, request_);
  end.posted_ps = request_.time_ps;
  if (request_.slot != ipc::no_slot) take_slot(rank, request_);
  rings.request_tail = ++end.request_tail;
}

void Exchange::take_slot(std::uint32_t rank, const ipc::Request& request) {
  std::vector<std::uint32_t>& reader_of = ends_[rank].reader_of;
  if (reader_of.empty()) reader_of.resize(ipc::slots_per_process);
  if (reader_of[request.slot] != 0)
    validation::refuse(rank, "request", "slot", request.slot, "one not in use");
  reader_of[request.slot] = request.target + 1;
  ++ends_[rank].slots_in_use;
}

void Exchange::take_returned_slots(std::uint32_t rank) {
  End& end = ends_[rank];
  ipc::Rings& rings = shared_.block(rank).rings;
  const std::uint32_t head = rings.returned_head;
  std::uint32_t left = validation::added(rank, "returned_head", head, end.returned_tail, ipc::returned_ring);
  for (; left > 0; --left) {
    const auto& entry = rings.returned[end.returned_tail % ipc::returned_ring];
    return_slot(rank, validation::returned(rank, entry, size_.process_count));
    rings.returned_tail = ++end.returned_tail;
  }
}

void Exchange::return_slot(std::uint32_t rank, validation::Returned slot) {
  End& owner = ends_[slot.owner];
  if (owner.reader_of.empty() || owner.reader_of[slot.slot] != rank + 1)
    validation::refuse(rank, "returned slot", "slot", slot.slot, "one that was sent to it");
  free_slot(slot.owner, slot.slot);
}

// Each slot is free at most once, so the ring has room for all of them, unless its owner has written a wrong
// free_tail.
void Exchange::free_slot(std::uint32_t rank, std::uint32_t slot) {
  End& owner = ends_[rank];
  owner.reader_of[slot] = 0;
  --owner.slots_in_use;
  ipc::Rings& rings = shared_.block(rank).rings;
  const std::uint32_t tail = rings.free_tail;
  validation::added(rank, "free_tail", owner.free_head, tail, ipc::slots_per_process - 1);
  rings.free_slots[owner.free_head % ipc::slots_per_process] = slot;
  rings.free_head = ++owner.free_head;
}

std::uint32_t Exchange::newly_taken(std::uint32_t rank) const {
  const End& end = ends_[rank];
  const std::uint32_t tail = shared_.block(rank).rings.event_tail;
  return validation::added(rank, "event_tail", tail, end.event_tail, end.event_head - end.event_tail);
}

void Exchange::put(std::uint32_t rank, const ipc::Event& event) {
  End& end = ends_[rank];
  if (end.delivered.empty()) end.delivered.resize(ipc::event_ring);
  ipc::Rings& rings = shared_.block(rank).rings;
  const std::uint32_t at = end.event_head % ipc::event_ring;
  end.delivered[at] = {.time_ps = event.time_ps,
                       .mailbox_packets = event.mailbox_packets,
                       .rail = event.rail,
                       .interface = event.interface};
  std::memcpy(static_cast<void*>(&rings.events[at]), &event,
              offsetof(ipc::Event, inline_data) + event.inline_length);
  rings.event_head = ++end.event_head;
}

}  // namespace apenet
