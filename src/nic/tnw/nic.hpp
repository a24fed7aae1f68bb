// Nic: the torus network processor of QPACE (Boyanov, DESY Zeuthen, 18.01.2011).
#pragma once

#include "nic/nic.hpp"
#include "nic/tnw/card.hpp"
#include "nic/tnw/cpu_links.hpp"
#include "nic/tnw/forwarder.hpp"
#include "nic/tnw/receiver.hpp"
#include "nic/tnw/transmitter.hpp"

namespace apenet::tnw {

// The NWP of a node: processor path, torus links, and the software that forwards messages to nodes that are
// not neighbours. docs/models/tnw.md explains each parameter and its source.
class Nic final : public apenet::Nic, private NetworkClient {
 public:
  // Attaches itself to the network at `node`.
  Nic(Cards& cards, NodeId node);

  void doorbell(MessageId id) override;
  void credit(const Descriptor& descriptor) override;
  void list_engines(EngineList& engines) const {
    engines.add("processor links", cpu_links_.use());
    engines.add("forwarding software", forwarder_.engine());
  }

  // For the forwarder: send_on() sends a message to the next neighbour on its way; dispatch() delivers it to
  // its process.
  void send_on(MessageId id, Role role, NodeId goal);
  void dispatch(MessageId id) { receiver_.dispatch(id); }

 private:
  void packet_arrived(const Packet& packet, Time head_time) override;
  void injection_freed(std::uint16_t channel) override;

  Card card_;
  Forwarder forwarder_;
  Transmitter transmitter_;
  Receiver receiver_;
  CpuLinks cpu_links_;
};

}  // namespace apenet::tnw
