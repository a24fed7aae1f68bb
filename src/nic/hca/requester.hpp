// Requester: the send queues of a node's queue pairs. Turns work requests into request packets, and
// acknowledgements and read responses into completion queue entries.
#pragma once

#include <cstdint>

#include "nic/hca/card.hpp"
#include "nic/hca/context_cache.hpp"
#include "nic/hca/transmitter.hpp"

namespace apenet::hca {

// A work request lies in host memory, and a doorbell makes the card fetch it. With a small payload inside,
// the processor can instead write it to the card (BlueFlame). Entries are processed and sent in queue order.
// Entries are retired in the same order, when the target has acknowledged them or, for reads, when the data
// have arrived. If the receiver was not ready, the queue stops and later resumes with the refused packet.
//
// Invariants: at most send_queue_entries of a queue are on the card or unacknowledged, and at most
// outstanding_rdma_reads of its reads are in progress. No entry is fetched while wqe_prefetch_entries are on
// the card; entries that are sent again return to the card even beyond that number.
class Requester final : public PacketSource, private BusClient, private EventHandler {
 public:
  Requester(Card& card, ContextCache& contexts, Transmitter& transmitter);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  void doorbell(MessageId id);
  // Everything below number `executed` is complete at the target.
  void acknowledged(ConnectionId connection, std::uint32_t executed, Time usable);
  void not_ready(ConnectionId connection, Time usable);
  void response_arrived(const Packet& packet, Time usable);

  [[nodiscard]] bool has_packet(ConnectionId connection) const override;
  [[nodiscard]] Next next_packet(ConnectionId connection) const override;
  bool packet_issued(ConnectionId connection) override;
  [[nodiscard]] const EngineUse& engine() const { return engine_; }

  struct State {
    Time engine_free_at;
    Time stored_at;                               // the last line of an entry has left the processor
    QueuePool<EntryName>::Queue stored_entries;   // entries whose lines leave the processor, in this order
    QueuePool<EntryName>::Queue written_entries;  // entries crossing the bus, in bus order
    QueuePool<EntryName>::Queue fetched_entries;
  };

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  [[nodiscard]] Work make_work(MessageId id, SendQueue& queue);
  [[nodiscard]] std::int64_t entry_bytes(const Work& work) const;
  [[nodiscard]] bool has_place(const SendQueue& queue) const;
  void store_entry(const EntryName& name, std::int64_t bytes);
  void entry_stored_now(const EntryName& name, std::int64_t bytes);
  void take_to_card(SendQueue& queue, const Work& work);
  void fetch_entries(ConnectionId connection);
  void entry_granted(const EntryName& name, const BusGrant& grant);
  void advance(ConnectionId connection);
  void choose_fifo(SendQueue& queue, const Work& first, std::uint16_t lane);
  void leave_fifo(SendQueue& queue, const Work& first);
  [[nodiscard]] std::int64_t unsent_bytes(const SendQueue& queue) const;
  void processed(ConnectionId connection);
  void rewind(Connection& connection);
  [[nodiscard]] static bool is_done(const SendQueue& queue, const Work& work);
  void read_completed(ConnectionId connection, Time usable);
  void retire(ConnectionId connection, Time usable);
  void completed(MessageId id);
  void payload_written(const Packet& packet);

  Card& card_;
  ContextCache& contexts_;
  Transmitter& transmitter_;
  State state_;
  EngineUse engine_;
};

}  // namespace apenet::hca
