// IdealNic: a card that is only a latency and a rate, for tests and teaching.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/simulation.hpp"
#include "nic/description.hpp"
#include "nic/messages.hpp"
#include "nic/nic.hpp"
#include "nic/placement.hpp"

namespace apenet {

class IdealNic;
using IdealNics = std::vector<std::unique_ptr<IdealNic>>;  // one a node

// A message of b bytes leaves at the card's rate, after those before it, and is in the target's memory a
// constant time later: post to arrival = latency + b / rate on an idle card. There is no network and no bus,
// and the receiver takes everything at once. The doorbell's own delay is part of the latency.
// A get goes through the target's card as a message of its own: 2 latency + b / rate.
class IdealNic final : public Nic, private EventHandler {
 public:
  // doorbell_delay <= description.latency has passed when a doorbell rings. `cards` are all cards of the
  // machine by node: those that answer a get.
  IdealNic(Simulation& simulation, const IdealDescription& description, Time doorbell_delay, NodeId node,
           MessageTable& messages, const Placement& placement, const IdealNics& cards);

  [[nodiscard]] static NicCapabilities capabilities_of(const IdealDescription& description);
  [[nodiscard]] NicCapabilities capabilities() const override { return capabilities_of(description_); }
  void doorbell(const Descriptor& descriptor) override;

 private:
  void handle_event(const Event& event) override;
  Time transmit(std::int64_t bytes);  // returns when the last byte has left

  Simulation& simulation_;
  IdealDescription description_;
  Time flight_;  // latency after the doorbell
  EventSource source_;
  MessageTable& messages_;
  const Placement& placement_;
  const IdealNics& cards_;
  Time free_at_;
};

}  // namespace apenet
