// Requester: the send queues of a node's queue pairs. Work requests in, request packets out; acknowledgements
// and read responses in, completion queue entries out.
#pragma once

#include <cstdint>

#include "nic/hca/card.hpp"
#include "nic/hca/context_cache.hpp"
#include "nic/hca/transmitter.hpp"

namespace apenet::hca {

// A work request lies in host memory, and a doorbell makes the card fetch it; or, with a small payload inside
// it, the processor writes it to the card (BlueFlame). Entries are processed and sent in the order of their
// queue, and retired in this order when the target has acknowledged them, reads when their data are here. A
// queue whose receiver was not ready stops, and goes on with the packet that was refused.
//
// Invariants: at most send_queue_entries of a queue are on the card or unacknowledged, and at most
// outstanding_rdma_reads of its reads under way. No entry is fetched while wqe_prefetch_entries are on the
// card; those that are sent again come back to it beyond that.
class Requester final : public PacketSource, private BusClient, private EventHandler {
 public:
  Requester(Card& card, ContextCache& contexts, Transmitter& transmitter);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  void doorbell(MessageId id);
  // Everything up to this number is complete at the target.
  void acknowledged(ConnectionId connection, std::uint32_t executed, Time usable);
  void not_ready(ConnectionId connection, Time usable);
  void response_arrived(const Packet& packet, Time usable);

  [[nodiscard]] bool has_packet(ConnectionId connection) const override;
  [[nodiscard]] Next next_packet(ConnectionId connection) const override;
  bool packet_issued(ConnectionId connection) override;

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  [[nodiscard]] Work make_work(MessageId id, SendQueue& queue);
  [[nodiscard]] std::int64_t entry_bytes(const Work& work) const;
  [[nodiscard]] bool has_place(const SendQueue& queue) const;
  void take_to_card(SendQueue& queue, const Work& work);
  void fetch_entries(ConnectionId connection);
  void entry_present(const EntryName& name, Time when);
  void advance(ConnectionId connection);
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
  Time engine_free_at_;
  QueuePool<EntryName>::Queue written_entries_;  // cross the bus, in their order there
  QueuePool<EntryName>::Queue fetched_entries_;
};

}  // namespace apenet::hca
