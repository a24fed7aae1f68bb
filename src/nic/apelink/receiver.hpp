// Receiver: the receiving half of an APELink card. Turns packets into DMA writes and events.
#pragma once

#include <cstdint>

#include "nic/apelink/card.hpp"
#include "nic/apelink/event_writer.hpp"

namespace apenet::apelink {

// A packet's header names a published buffer. A look-up in the card's table yields the address, and the
// payload is written to host memory without the CPU. If the bus is idle, the write may begin directly after
// the header (see Bus). The packet leaves the ejection buffer when the write has ended.
class Receiver final : private BusClient, private EventHandler {
 public:
  Receiver(Card& card, EventWriter& events) : card_(card), events_(events) {}
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  void packet_arrived(const Packet& packet, Time head_time);

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;

  void take_payload(const Packet& packet, Time usable);
  void payload_written(const Packet& packet);
  void note_grant(const Packet& packet, const BusGrant& grant) const;

  Card& card_;
  EventWriter& events_;
};

}  // namespace apenet::apelink
