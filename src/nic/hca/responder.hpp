// Responder: the receiving side of a node's queue pairs. Takes request packets; writes payload and completion
// queue entries; sends acknowledgements and read responses.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/hca/card.hpp"
#include "nic/hca/transmitter.hpp"

namespace apenet::hca {

// A send, or a write that notifies the target, takes a work request from the process's shared receive queue.
// If there is none, the card answers "receiver not ready" and drops the following packets of the connection
// until the refused packet is sent again. Payload is written to memory, followed by a completion queue entry.
// Then the message is executed, and acknowledged on request. The card serves reads without the CPU.
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

  struct State {
    std::vector<std::int64_t> free_receives;  // per port, the work requests in the shared receive queue
  };

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;
  void note_grant(const BusGrant& grant) const;

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
  State state_;
};

}  // namespace apenet::hca
