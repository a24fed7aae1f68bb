// TnwForwarder: the software of a node that takes messages to nodes that are not neighbours.
#pragma once

#include <cstdint>

#include "nic/tnw/card.hpp"

namespace apenet {

class TnwNic;

// Store and forward, one message after another: what has arrived in host memory is taken in forward_service,
// and goes on to the next neighbour in dimension order, is handed to its process, or, a confirmation, told to
// it.
//
// Free of deadlock: host memory is not bounded here, so that a forwarded packet never waits for another one's
// buffer: its channel on each link empties by itself.
class TnwForwarder final : private EventHandler {
 public:
  TnwForwarder(TnwCard& card, TnwNic& nic) : card_(card), nic_(nic) {}
  TnwForwarder(const TnwForwarder&) = delete;
  TnwForwarder& operator=(const TnwForwarder&) = delete;

  void arrived(MessageId id, TnwRole role);
  // Tells the source of a stranger's message that it is complete here.
  void confirm(MessageId id);

 private:
  void handle_event(const Event& event) override;

  TnwCard& card_;
  TnwNic& nic_;
  Time free_at_;
};

}  // namespace apenet
