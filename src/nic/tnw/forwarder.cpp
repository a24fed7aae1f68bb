#include "nic/tnw/forwarder.hpp"

#include <algorithm>

#include "nic/tnw/tnw_nic.hpp"

namespace apenet {

void TnwForwarder::arrived(MessageId id, TnwRole role) {
  free_at_ = std::max(free_at_, card_.now()) + card_.all.description.forward_service;
  card_.all.simulation.schedule(card_.source, free_at_, *this, id, static_cast<std::uint64_t>(role));
}

void TnwForwarder::handle_event(const Event& event) {
  const auto id = static_cast<MessageId>(event.argument_a);
  const auto role = static_cast<TnwRole>(event.argument_b);
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const ProcessId goal = role == TnwRole::data ? descriptor.target : descriptor.source;
  if (card_.all.placement.node(goal) != card_.node) {
    ++card_.all.counters.forwards;
    nic_.send_on(id, role, card_.all.placement.node(goal));
  } else if (role == TnwRole::data) {
    nic_.hand_over(id);
  } else {
    card_.all.messages.remote_done(id);
  }
}

void TnwForwarder::confirm(MessageId id) {
  ++card_.all.counters.confirmed;
  nic_.send_on(id, TnwRole::confirm, card_.all.placement.node(card_.all.messages.descriptor(id).source));
}

}  // namespace apenet
