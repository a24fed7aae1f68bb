#include "nic/tnw/forwarder.hpp"

#include <algorithm>

#include "nic/tnw/nic.hpp"

namespace apenet::tnw {

void Forwarder::arrived(MessageId id, Role role) {
  const Time begin = std::max(state_.free_at, card_.now());
  engine_.take(card_.now(), begin, card_.all.description.forward_service);
  state_.free_at = begin + card_.all.description.forward_service;
  card_.all.simulation.schedule(card_.state.source, state_.free_at, *this, id,
                                static_cast<std::uint64_t>(role));
}

void Forwarder::handle_event(const Event& event) {
  const auto id = static_cast<MessageId>(event.argument_a);
  const auto role = static_cast<Role>(event.argument_b);
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const ProcessId goal = role == Role::data ? descriptor.target : descriptor.source;
  if (card_.all.placement.node(goal) != card_.node) {
    ++card_.all.counters.forwards;
    nic_.send_on(id, role, card_.all.placement.node(goal));
  } else if (role == Role::data) {
    nic_.dispatch(id);
  } else {
    card_.all.messages.remote_done(id);
  }
}

void Forwarder::confirm(MessageId id) {
  ++card_.all.counters.confirmed;
  nic_.send_on(id, Role::confirm, card_.all.placement.node(card_.all.messages.descriptor(id).source));
}

}  // namespace apenet::tnw
