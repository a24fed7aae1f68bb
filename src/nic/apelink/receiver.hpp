// Receiver: the receiving half of an APELink card. Packets in, DMA writes and events out.
#pragma once

#include <cstdint>

#include "nic/apelink/card.hpp"
#include "nic/apelink/transmitter.hpp"

namespace apenet {

// A packet's header names a published buffer; the look-up in the card's table gives the address, and the
// payload is written to host memory without the CPU. The write may begin behind the header when the bus is
// idle (see Bus); the packet leaves the ejection buffer when it has ended. Behind the last packet's payload
// the card writes an event: since posted writes keep their order, who sees the event finds the data.
//
// A get has no hardware of its own: its request becomes an event for the driver, which after get_service
// posts the data as a descriptor like any other. One driver serves a node's requests one after another.
class Receiver final : private BusClient, private EventHandler {
 public:
  Receiver(ApelinkCard& card, Transmitter& transmitter);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  void packet_arrived(const Packet& packet, Time head_time);

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  void take_payload(const Packet& packet, Time usable);
  void payload_written(const Packet& packet);
  void write_event(std::uint8_t what, MessageId id, Time earliest);
  void message_complete(MessageId id);
  void serve_get(MessageId id);

  ApelinkCard& card_;
  Transmitter& transmitter_;
  Time driver_free_at_;
};

}  // namespace apenet
