// Nic: the APEnet+ card, V4 and V5 (poster of CHEP 2016; J.Phys.Conf.Ser. 898, 082035).
#pragma once

#include "nic/apelink/card.hpp"
#include "nic/apelink/event_writer.hpp"
#include "nic/apelink/transmitter.hpp"
#include "nic/apelink_plus/card.hpp"
#include "nic/apelink_plus/receiver.hpp"
#include "nic/nic.hpp"

namespace apenet::apelink_plus {

// The PCI Express card: the transmitter of all APENet cards, and a receiver that translates addresses.
// docs/models/apelink-plus.md explains each parameter and its source.
class Nic final : public apenet::Nic, private NetworkClient {
 public:
  // Attaches itself to the network at card.node().
  Nic(const apelink::Card& card, Cards& plus)
      : card_(card),
        gpu_(card.all.simulation, plus.gpu, card.bus, card_.state.source),
        transmitter_(card_),
        events_(card_, transmitter_),
        receiver_(card_, plus, events_) {
    if (plus.description.gpu.is_there()) card_.gpu = &gpu_;
    card_.all.network.attach(card_.node(), *this);
  }

  void doorbell(MessageId id) override { transmitter_.doorbell(id); }
  void list_engines(EngineList& engines) const {
    transmitter_.list_engines(engines);
    receiver_.list_engines(engines);
  }

 private:
  void packet_arrived(const Packet& packet, Time head_time) override {
    receiver_.packet_arrived(packet, head_time);
  }
  void injection_freed(std::uint16_t channel) override { transmitter_.injection_freed(channel); }

  apelink::Card card_;
  GpuMemory gpu_;
  apelink::Transmitter transmitter_;
  apelink::EventWriter events_;
  Receiver receiver_;
};

}  // namespace apenet::apelink_plus
