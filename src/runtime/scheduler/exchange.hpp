// Exchange: the simulator's end of the rings of all processes.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ipc/protocol.hpp"
#include "runtime/scheduler/request_validation.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// Checks and takes what the processes put into their rings, and puts events in. Keeps its own copy of
// everything it writes and never reads that back. Every function that reads the shared memory throws
// RankError for invalid content.
class Exchange {
 public:
  Exchange(SharedMemory& shared, validation::RunSize size)
      : shared_(shared), size_(size), ends_(size.process_count) {}

  // Returns the report in the process's block, and records its clock. Requires that the process waits.
  validation::WaitReport read_report(std::uint32_t rank);
  // Reads and records only the clock, of a process that is suspended.
  std::int64_t read_clock_ps(std::uint32_t rank);
  // The same for a process that has ended. Accepts any content.
  std::int64_t read_last_clock_ps(std::uint32_t rank);
  // The clock as last read, or as the simulator has since advanced it.
  [[nodiscard]] std::int64_t clock_ps(std::uint32_t rank) const { return ends_[rank].clock_ps; }
  void advance_clock(std::uint32_t rank, std::int64_t to_ps);

  // Calls take(request) for each request posted since the last call, in order. The reference is valid during
  // the call only.
  template <typename Take>
  void take_requests(std::uint32_t rank, Take take);

  // Returns each slot that the process has given back to the slot's owner.
  void take_returned_slots(std::uint32_t rank);
  // The slots of the process whose payloads nobody has given back.
  [[nodiscard]] std::uint32_t slots_in_use(std::uint32_t rank) const { return ends_[rank].slots_in_use; }
  // Frees a slot of the process whose payload no reader has got.
  void free_slot(std::uint32_t rank, std::uint32_t slot);

  // Records which events the process has taken since the last call. Calls taken(time, rail, interface) for
  // each of them that occupied the card's mailbox.
  template <typename Taken>
  void take_notice(std::uint32_t rank, Taken taken);
  // Calls untaken(event, mailbox_packets, rail) for each event in the ring that the process has not taken. It
  // may have overwritten the event.
  template <typename Untaken>
  void for_untaken(std::uint32_t rank, Untaken untaken) const;

  // The number of events in the ring, and the time of the oldest.
  [[nodiscard]] std::uint32_t events(std::uint32_t rank) const {
    return ends_[rank].event_head - ends_[rank].event_tail;
  }
  [[nodiscard]] std::int64_t first_event_ps(std::uint32_t rank) const {
    const End& end = ends_[rank];
    return end.delivered[end.event_tail % ipc::event_ring].time_ps;
  }
  // Whether the process has posted since the last call of take_requests(). May be called
  // while the process runs.
  [[nodiscard]] bool has_requests(std::uint32_t rank) const {
    return shared_.block(rank).rings.request_head != ends_[rank].request_tail;
  }
  // Whether the process reports that it has taken all events. May be called while the process runs.
  [[nodiscard]] bool says_empty(std::uint32_t rank) const {
    return shared_.block(rank).rings.event_tail == ends_[rank].event_head;
  }
  [[nodiscard]] bool has_room(std::uint32_t rank) const { return events(rank) < ipc::event_ring; }
  // Number and memory of the place for the payload of the next event.
  [[nodiscard]] std::uint32_t next_event_place(std::uint32_t rank) const {
    return message::first_event_place + ends_[rank].event_head % ipc::event_ring;
  }
  [[nodiscard]] std::byte* next_event_payload(std::uint32_t rank) {
    return shared_.event_place(rank, ends_[rank].event_head % ipc::event_ring);
  }
  // Requires has_room().
  void put(std::uint32_t rank, const ipc::Event& event);

 private:
  struct DeliveredEvent {
    std::int64_t time_ps;
    std::uint32_t mailbox_packets;
    std::uint8_t rail;
    ipc::Interface interface;
  };
  struct End {
    std::int64_t clock_ps = 0;
    std::int64_t posted_ps = 0;  // time of the last request
    std::uint32_t request_tail = 0;
    std::uint32_t event_head = 0;
    std::uint32_t event_tail = 0;  // as last read
    std::uint32_t returned_tail = 0;
    std::uint32_t free_head = 0;
    std::uint32_t slots_in_use = 0;
    std::vector<DeliveredEvent> delivered;  // per event in the ring; allocated with the first event
    std::vector<std::uint32_t> reader_of;   // per slot: rank of the reader + 1, or 0 if the slot is free
  };
  std::uint32_t begin_requests(std::uint32_t rank);
  void take_request(std::uint32_t rank);
  void take_slot(std::uint32_t rank, const ipc::Request& request);
  void return_slot(std::uint32_t rank, validation::Returned slot);
  std::uint32_t newly_taken(std::uint32_t rank) const;

  SharedMemory& shared_;
  validation::RunSize size_;
  std::vector<End> ends_;
  ipc::Request request_;  // the request being taken
};

template <typename Take>
void Exchange::take_requests(std::uint32_t rank, Take take) {
  for (std::uint32_t left = begin_requests(rank); left > 0; --left) {
    take_request(rank);
    take(static_cast<const ipc::Request&>(request_));
  }
}

template <typename Taken>
void Exchange::take_notice(std::uint32_t rank, Taken taken) {
  End& end = ends_[rank];
  for (std::uint32_t left = newly_taken(rank); left > 0; --left) {
    const std::uint32_t at = end.event_tail++ % ipc::event_ring;
    if (end.delivered[at].mailbox_packets == 0) continue;
    taken(validation::taken_ps(rank, shared_.block(rank).rings.events[at], end.delivered[at].time_ps,
                               end.clock_ps),
          end.delivered[at].rail, end.delivered[at].interface);
  }
}

template <typename Untaken>
void Exchange::for_untaken(std::uint32_t rank, Untaken untaken) const {
  const End& end = ends_[rank];
  for (std::uint32_t at = end.event_tail; at != end.event_head; ++at) {
    const DeliveredEvent& delivered = end.delivered[at % ipc::event_ring];
    const ipc::Event event = shared_.block(rank).rings.events[at % ipc::event_ring];
    untaken(event, delivered.mailbox_packets, delivered.rail);
  }
}

}  // namespace apenet
