// ApelinkNic: the APELink card of 2004 and 2005 (hep-lat/0409071; PoS(LAT2005)100).
#pragma once

#include "nic/apelink/card.hpp"
#include "nic/apelink/receiver.hpp"
#include "nic/apelink/transmitter.hpp"
#include "nic/nic.hpp"

namespace apenet {

// The PCI-X card: transmitter, receiver, and the crossbar's local port that connects them to the network.
// docs/models/apelink.md explains each parameter and its source.
class ApelinkNic final : public Nic, private NetworkClient {
 public:
  // Attaches itself to the network at card.node().
  explicit ApelinkNic(const ApeCard& card);

  [[nodiscard]] NicCapabilities capabilities() const override {
    return ape_card_capabilities(card_.all.description);
  }
  void doorbell(MessageId id) override;
  [[gnu::always_inline]] void prepare_doorbell() const { transmitter_.prepare_doorbell(); }

 private:
  void packet_arrived(const Packet& packet, Time head_time) override;
  void injection_freed(std::uint16_t channel) override;

  ApeCard card_;
  Transmitter transmitter_;
  EventWriter events_;
  Receiver receiver_;
};

}  // namespace apenet
