// Receiver: the receiving half of an APELink card. Packets in, DMA writes and events out.
#pragma once

#include <cstdint>

#include "nic/apelink/card.hpp"
#include "nic/apelink/event_writer.hpp"

namespace apenet {

// A packet's header names a published buffer; the look-up in the card's table gives the address, and the
// payload is written to host memory without the CPU. The write may begin behind the header when the bus is
// idle (see Bus); the packet leaves the ejection buffer when it has ended.
class Receiver final : private BusClient, private EventHandler {
 public:
  Receiver(ApeCard& card, EventWriter& events) : card_(card), events_(events) {}
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  void packet_arrived(const Packet& packet, Time head_time);

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;

  void take_payload(const Packet& packet, Time usable);
  void payload_written(const Packet& packet);

  ApeCard& card_;
  EventWriter& events_;
};

}  // namespace apenet
