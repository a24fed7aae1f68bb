// Nic: a card that consists only of latencies and rates, for tests, teaching, and fabrics of which only
// timings are known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernel/simulation.hpp"
#include "nic/engine_use.hpp"
#include "nic/ideal/protocols.hpp"
#include "nic/messages.hpp"
#include "nic/nic.hpp"
#include "nic/placement.hpp"

namespace apenet::ideal {

class Nic;
using Nics = std::vector<std::unique_ptr<Nic>>;  // one per node

// A message of b bytes uses all paths of its protocol at the same time, on each after the messages before it.
// On an idle card, post to arrival = max over paths (latency + gap + b / rate + b / transit); n messages
// posted together arrive after max (latency + n gap + n b / rate). There is no network and no bus, and the
// receiver accepts everything at once. The doorbell delay is part of the latency. Messages to one target
// arrive in the order of their doorbells, whatever their protocols. A get is a message of the target's card,
// preceded by a request that takes the control latency.
class Nic final : public apenet::Nic, private EventHandler {
 public:
  // doorbell_delay: time that has passed since the post when the doorbell rings; at most
  // control_latency(protocols). `cards`: all cards of the machine by node; a get uses the target's card.
  Nic(Simulation& simulation, const Protocols& protocols, Time doorbell_delay, EventSource source,
      MessageTable& messages, const Placement& placement, const Nics& cards);

  // The smallest latency of any message, which requests and acknowledgements take.
  [[nodiscard]] static Time control_latency(const Protocols& protocols);
  void doorbell(MessageId id) override;
  void list_engines(EngineList& engines) const {
    for (const EngineUse& path : paths_) engines.add("paths", path);
  }

  struct State {
    EventSource source;
    std::vector<Time> free_at;            // one per path
    std::map<NodeId, Time> last_arrival;  // per target
  };

 private:
  struct Departure {
    Time gone;     // when the last byte has left
    Time arrived;  // when the message is in the target's memory, counted without the doorbell delay
  };
  void handle_event(const Event& event) override;
  // Throws PastEndOfTime.
  Departure transmit(const Descriptor& descriptor);
  Time in_order(NodeId target, Time arrival);

  Simulation& simulation_;
  const Protocols& protocols_;
  const Time doorbell_delay_;
  const Time control_latency_;
  MessageTable& messages_;
  const Placement& placement_;
  const Nics& cards_;
  State state_;
  std::vector<EngineUse> paths_;
};

}  // namespace apenet::ideal
