// Responder: the receiving side of a node's queue pairs. Request packets in, payload and completion queue
// entries written, acknowledgements and read responses out.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/hca/card.hpp"
#include "nic/hca/transmitter.hpp"

namespace apenet::hca {

// A send, and a write that tells the target, takes a work request of the process's shared receive queue.
// Where there is none, the packet is answered by "receiver not ready", and all that follow of the connection
// are thrown away until it comes again. Payload is written to memory, and behind it a completion queue entry;
// then the message is executed, and acknowledged if it asks for it. Reads are served by the card alone.
class Responder final : public PacketSource, private BusClient, private EventHandler {
 public:
  Responder(Card& card, Transmitter& transmitter);
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  void request_arrived(const Packet& packet, Time usable);
  void read_request_arrived(const Packet& packet, Time usable);

  [[nodiscard]] bool has_packet(ConnectionId connection) const override;
  [[nodiscard]] Next next_packet(ConnectionId connection) const override;
  bool packet_issued(ConnectionId connection) override;

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  [[nodiscard]] bool is_refused(Connection& connection, const Packet& packet);
  [[nodiscard]] bool needs_receive(const Descriptor& descriptor, const Packet& packet) const;
  void write_payload(const Packet& packet, const Descriptor& descriptor, Time usable);
  void take_message(const Packet& packet, const Descriptor& descriptor, Time usable);
  void payload_written(const Packet& packet);
  void in_memory(ConnectionId connection, MessageId id);
  void execute(ConnectionId connection, const Inbound& inbound);
  void start_read(ConnectionId connection);

  Card& card_;
  Transmitter& transmitter_;
  std::vector<std::int64_t> free_receives_;  // by port: work requests in the shared receive queue
};

}  // namespace apenet::hca
