// IdealNic: a card that is only latencies and rates, for tests, teaching, and fabrics of which only times are
// known.
#pragma once

#include <cstdint>
#include <map>
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

// A message of b bytes takes the paths of its protocol at once, each after the messages before it: on an idle
// card post to arrival = max over paths (latency + gap + b / rate + b / transit), and n messages posted
// together arrive after max (latency + n gap + n b / rate). There is no network and no bus, and the receiver
// takes everything at once. The doorbell's own delay is part of the latency. Messages to one target arrive in
// the order of their doorbells, whatever their protocols. A get goes through the target's card as a message
// of its own, behind a request that takes the control latency.
class IdealNic final : public Nic, private EventHandler {
 public:
  // doorbell_delay <= control_latency(description) has passed when a doorbell rings. `cards` are all cards of
  // the machine by node: those that answer a get.
  IdealNic(Simulation& simulation, const IdealDescription& description, Time doorbell_delay, NodeId node,
           MessageTable& messages, const Placement& placement, const IdealNics& cards);

  // The least latency of any message: what a request or an acknowledgement takes.
  [[nodiscard]] static Time control_latency(const IdealDescription& description);
  [[nodiscard]] static NicCapabilities capabilities_of(const IdealDescription& description);
  [[nodiscard]] NicCapabilities capabilities() const override { return capabilities_of(description_); }
  void doorbell(MessageId id) override;

 private:
  struct Departure {
    Time gone;     // the last byte has left
    Time arrived;  // it is in the target's memory, if the message was posted now
  };
  void handle_event(const Event& event) override;
  Departure transmit(std::int64_t bytes);
  Time in_order(NodeId target, Time arrival);

  Simulation& simulation_;
  const IdealDescription& description_;
  Time doorbell_delay_;
  Time control_latency_;
  EventSource source_;
  MessageTable& messages_;
  const Placement& placement_;
  const IdealNics& cards_;
  std::vector<Time> free_at_;            // one a path
  std::map<NodeId, Time> last_arrival_;  // by target
};

}  // namespace apenet
