// Nic: an InfiniBand host channel adapter; with other parameters, an adapter for RDMA over Converged
// Ethernet.
#pragma once

#include "nic/hca/card.hpp"
#include "nic/hca/context_cache.hpp"
#include "nic/hca/requester.hpp"
#include "nic/hca/responder.hpp"
#include "nic/hca/transmitter.hpp"
#include "nic/nic.hpp"

namespace apenet::hca {

// The adapter of a node: both sides of its queue pairs, and the packet scheduler between them and the link.
// docs/models/hca.md explains each parameter and its source.
class Nic final : public apenet::Nic, private NetworkClient, private EventHandler {
 public:
  // Attaches itself to the network at card.node.
  explicit Nic(const Card& card);

  void doorbell(MessageId id) override { requester_.doorbell(id); }
  void list_engines(EngineList& engines) const {
    engines.add("work request engines", requester_.engine());
    engines.add("context fetches", fetches_);
  }

  struct State {
    QueuePool<Arrival>::Queue stalled;  // the first waits for its context, the others wait behind it
  };

 private:
  void packet_arrived(const Packet& packet, Time head_time) override;
  void injection_freed(std::uint16_t channel) override;
  void handle_event(const Event& event) override;

  [[nodiscard]] bool context_is_here(const Packet& packet);
  void fetch_context();
  void take(const Packet& packet, Time head_time);

  Card card_;
  ContextCache contexts_;
  Transmitter transmitter_;
  Requester requester_;
  Responder responder_;
  State state_;
  EngineUse fetches_;  // that arriving packets wait for
};

}  // namespace apenet::hca
