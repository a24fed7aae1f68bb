// EventWriter: notifies the host by DMA-written events, and models the driver's reaction to them.
#pragma once

#include <cstdint>

#include "nic/apelink/card.hpp"
#include "nic/apelink/transmitter.hpp"

namespace apenet::apelink {

// After the last packet's payload the card writes an event. Posted writes keep their order, so a process that
// sees the event also finds the data.
//
// The hardware has no get: the request becomes an event for the driver, which after get_service posts the
// data as an ordinary descriptor. One driver serves a node's requests one after another.
class EventWriter final : private BusClient, private EventHandler {
 public:
  enum class About : std::uint8_t { delivered, remote_done, get_request };

  EventWriter(Card& card, Transmitter& transmitter);
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // Writes the event of a packet whose tail has arrived. The write may count from `earliest` if the bus was
  // idle.
  void write(About what, MessageId id, Time earliest);
  // Call when a message without notification is complete in memory. For other messages the event calls this.
  void message_complete(MessageId id);

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;
  void serve_get(MessageId id);

  Card& card_;
  MessageTable& messages_;
  Transmitter& transmitter_;
};

// The event for a packet without payload.
[[nodiscard]] EventWriter::About about(Role role);

}  // namespace apenet::apelink
