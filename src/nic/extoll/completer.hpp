// Completer: what receives for RMA. Packets in, DMA writes and notifications out.
#pragma once

#include <cstdint>

#include "nic/extoll/card.hpp"
#include "nic/extoll/rma_unit.hpp"

namespace apenet::extoll {

// The payload of a put or of a get's response is written to memory without the CPU; the write may begin
// behind the header when the bus is idle (see Bus), and the packet leaves the ejection buffer when it has
// ended. Behind the last packet's payload a notification is written, if one is wanted: since posted writes
// keep their order, who sees the notification finds the data. A get's request goes to the responder.
//
// An origin that wants to know that its put is in the target's memory is told by an acknowledgement: a packet
// without payload, which the target's card sends when the last write has ended, and which becomes a
// notification at the origin.
class Completer final : private BusClient, private EventHandler {
 public:
  Completer(Card& card, RmaUnit& responder) : card_(card), responder_(responder) {}
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  void packet_arrived(const Packet& packet, Time head_time);

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  void take_payload(const Packet& packet, Time usable);
  void payload_written(const Packet& packet);
  void notify(std::uint8_t what, MessageId id, Time earliest);
  void message_complete(MessageId id);

  Card& card_;
  RmaUnit& responder_;
  Pace pace_;
};

}  // namespace apenet::extoll
