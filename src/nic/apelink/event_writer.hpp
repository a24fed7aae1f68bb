// EventWriter: how a card tells its host: events by DMA, and what the driver does with them.
#pragma once

#include <cstdint>

#include "nic/apelink/card.hpp"
#include "nic/apelink/transmitter.hpp"

namespace apenet {

// Behind the last packet's payload the card writes an event: since posted writes keep their order, who sees
// the event finds the data.
//
// A get has no hardware of its own: its request becomes an event for the driver, which after get_service
// posts the data as a descriptor like any other. One driver serves a node's requests one after another.
class EventWriter final : private BusClient, private EventHandler {
 public:
  enum class About : std::uint8_t { delivered, remote_done, get_request };

  EventWriter(ApeCard& card, Transmitter& transmitter);
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // The event of a packet whose tail is there now, and which could have been written from `earliest`.
  void write(About what, MessageId id, Time earliest);
  // A message that nobody at the target is told of is in memory now; one that is told of comes here itself.
  void message_complete(MessageId id);

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;
  void serve_get(MessageId id);

  ApeCard& card_;
  MessageTable& messages_;
  Transmitter& transmitter_;
};

// What the host is told of a packet without payload for it.
[[nodiscard]] EventWriter::About about(PacketRole role);

}  // namespace apenet
