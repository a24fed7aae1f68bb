// ApelinkPlusNic: the APEnet+ card, V4 and V5 (poster of CHEP 2016; J.Phys.Conf.Ser. 898, 082035).
#pragma once

#include "nic/apelink/card.hpp"
#include "nic/apelink/event_writer.hpp"
#include "nic/apelink/transmitter.hpp"
#include "nic/apelink_plus/plus_card.hpp"
#include "nic/apelink_plus/plus_receiver.hpp"
#include "nic/nic.hpp"

namespace apenet {

// The PCI Express card: the transmitter of all APENet cards, and a receiver that translates addresses.
// docs/models/apelink-plus.md explains each parameter and its source.
class ApelinkPlusNic final : public Nic, private NetworkClient {
 public:
  // Attaches itself to the network at card.node().
  ApelinkPlusNic(const ApeCard& card, PlusCards& plus);

  [[nodiscard]] static NicCapabilities capabilities_of(const ApelinkPlusDescription& description);
  [[nodiscard]] NicCapabilities capabilities() const override { return capabilities_of(plus_.description); }
  void doorbell(MessageId id) override;

 private:
  void packet_arrived(const Packet& packet, Time head_time) override;
  void injection_freed(std::uint16_t channel) override;

  ApeCard card_;
  PlusCards& plus_;
  GpuMemory gpu_;
  Transmitter transmitter_;
  EventWriter events_;
  PlusReceiver receiver_;
};

}  // namespace apenet
