// Completer: the receiving unit of RMA. Turns packets into DMA writes and notifications.
#pragma once

#include <cstdint>

#include "nic/extoll/card.hpp"
#include "nic/extoll/rma_unit.hpp"

namespace apenet::extoll {

// The payload of a put or of a get's response is written to memory without the CPU. If the bus is idle, the
// write may begin directly after the header (see Bus). The packet leaves the ejection buffer when the write
// has ended. After the last packet's payload a notification is written if requested. Posted writes keep their
// order, so a process that sees the notification also finds the data. The request of a get goes to the
// responder.
//
// If an origin requests remote completion of a put, the target's card sends an acknowledgement, a packet
// without payload, when the last write has ended. It becomes a notification at the origin.
class Completer final : private BusClient, private EventHandler {
 public:
  Completer(Card& card, RmaUnit& responder) : card_(card), responder_(responder) {}
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  void packet_arrived(const Packet& packet, Time head_time);

  [[nodiscard]] const EngineUse& engine() const { return engine_; }
  struct State {
    Pace pace;
  };

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;
  void note_grant(const BusGrant& grant) const;

  void take_payload(const Packet& packet, Time usable);
  void payload_written(const Packet& packet);
  void notify(std::uint8_t what, MessageId id, Time earliest);
  void message_complete(MessageId id);

  Card& card_;
  RmaUnit& responder_;
  State state_;
  EngineUse engine_;
};

}  // namespace apenet::extoll
