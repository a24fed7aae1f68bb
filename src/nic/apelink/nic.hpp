// Nic: the APELink card of 2004 and 2005 (hep-lat/0409071; PoS(LAT2005)100).
#pragma once

#include "nic/apelink/card.hpp"
#include "nic/apelink/receiver.hpp"
#include "nic/apelink/transmitter.hpp"
#include "nic/nic.hpp"

namespace apenet::apelink {

// The PCI-X card: transmitter, receiver, and the crossbar's local port that connects them to the network.
// docs/models/apelink.md explains each parameter and its source.
class Nic final : public apenet::Nic, private NetworkClient {
 public:
  // Attaches itself to the network at card.node().
  explicit Nic(const Card& card)
      : card_(card), transmitter_(card_), events_(card_, transmitter_), receiver_(card_, events_) {
    card_.all.network.attach(card_.node(), *this);
  }

  void doorbell(MessageId id) override { transmitter_.doorbell(id); }
  void list_state(StateList& list) {
    list.state(card_.state);
    list.counters(card_.driver);
    transmitter_.list_state(list);
    card_.bus.list_state(list);
  }
  void list_engines(EngineList& engines) const { transmitter_.list_engines(engines); }
  [[gnu::always_inline]] void prepare_doorbell() const { transmitter_.prepare_doorbell(); }

 private:
  void packet_arrived(const Packet& packet, Time head_time) override {
    receiver_.packet_arrived(packet, head_time);
  }
  void injection_freed(std::uint16_t channel) override { transmitter_.injection_freed(channel); }

  Card card_;
  Transmitter transmitter_;
  EventWriter events_;
  Receiver receiver_;
};

}  // namespace apenet::apelink
