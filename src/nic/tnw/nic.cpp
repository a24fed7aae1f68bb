#include "nic/tnw/nic.hpp"

namespace apenet::tnw {

Nic::Nic(Cards& cards, NodeId node)
    : card_{cards, node, {{EventKind::nic, cards.first_source + node, 0}}, cards.hops.neighbours(node)},
      forwarder_(card_, *this),
      transmitter_(card_, receiver_),
      receiver_(card_, transmitter_, forwarder_),
      cpu_links_(cards.simulation, card_.state.source, transmitter_, receiver_) {
  cards.network.attach(node, *this);
}

void Nic::credit(const Descriptor& descriptor) {
  transmitter_.post({descriptor.source, descriptor.target, descriptor.channel, descriptor.bytes, 0, {}});
  cpu_links_.serve();
}

void Nic::doorbell(MessageId id) {
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const NodeId goal = card_.all.placement.node(descriptor.target);
  const std::uint32_t link = card_.link_to(goal);
  if (link == Cards::links) {
    ++card_.all.counters.strangers;
    send_on(id, Role::data, goal);
    return;
  }
  transmitter_.post({id, Role::data, 0, {}}, link, card_.all.lane_of(descriptor.source, descriptor.channel));
  cpu_links_.serve();
}

void Nic::send_on(MessageId id, Role role, NodeId goal) {
  const NodeId next = card_.all.hops.next_hop(card_.node, goal);
  transmitter_.post({id, role, 0, {}}, card_.link_to(next), card_.all.forward_lane());
  cpu_links_.serve();
}

void Nic::packet_arrived(const Packet& packet, Time /*head_time*/) {
  const Role role = role_of(packet);
  if (role == Role::data || role == Role::confirm) {
    receiver_.packet_arrived(packet);
  } else {
    card_.all.network.consumed(card_.node, packet);
    transmitter_.acknowledged(packet);
  }
  cpu_links_.serve();
}

void Nic::injection_freed(std::uint16_t channel) {
  transmitter_.injection_freed(channel);
  cpu_links_.serve();
}

}  // namespace apenet::tnw
