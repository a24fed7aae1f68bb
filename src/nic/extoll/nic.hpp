// Nic: the EXTOLL card of the Virtex-4 cluster (R1): VELO for small messages, RMA for put and get.
#pragma once

#include "nic/extoll/card.hpp"
#include "nic/extoll/completer.hpp"
#include "nic/extoll/rma_unit.hpp"
#include "nic/extoll/velo.hpp"
#include "nic/nic.hpp"

namespace apenet::extoll {

// The HyperTransport card: its engines, and the switch's local port that connects them to the network.
// docs/models/extoll.md explains each parameter and its source.
class Nic final : public apenet::Nic, private NetworkClient {
 public:
  // Attaches itself to the network at card.node.
  explicit Nic(const Card& card);

  void doorbell(MessageId id) override;
  void give_back(ProcessId process) override { velo_.give_back(process); }
  void list_engines(EngineList& engines) const {
    velo_.list_engines(engines);
    engines.add("RMA requesters", requester_.decoder());
    engines.add("RMA responders", responder_.decoder());
    engines.add("RMA completers", completer_.engine());
  }

 private:
  void packet_arrived(const Packet& packet, Time head_time) override;
  void injection_freed(std::uint16_t channel) override;

  Card card_;
  RmaUnit requester_;
  RmaUnit responder_;
  Completer completer_;
  Velo velo_;
};

}  // namespace apenet::extoll
