// Forwarder: the software of a node that forwards messages to nodes that are not neighbours.
#pragma once

#include <cstdint>

#include "nic/tnw/card.hpp"

namespace apenet::tnw {

class Nic;

// Stores and forwards one message after another. Each message in host memory takes forward_service. Then it
// is sent to the next neighbour in dimension order, delivered to its process, or, if it is a confirmation,
// reported to its process.
//
// Free of deadlock: host memory is unbounded here, so a forwarded packet never waits for another one's
// buffer, and its channel on each link always drains.
class Forwarder final : private EventHandler {
 public:
  Forwarder(Card& card, Nic& nic) : card_(card), nic_(nic) {}
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  void arrived(MessageId id, Role role);
  // Sends a confirmation to the source of a stranger's message that is complete here.
  void confirm(MessageId id);
  [[nodiscard]] const EngineUse& engine() const { return engine_; }

  struct State {
    Time free_at;
  };

 private:
  void handle_event(const Event& event) override;

  Card& card_;
  Nic& nic_;
  State state_;
  EngineUse engine_;
};

}  // namespace apenet::tnw
