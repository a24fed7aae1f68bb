#include "nic/tnw/transmitter.hpp"

#include <bit>

#include "nic/tnw/receiver.hpp"

namespace apenet::tnw {

namespace {

enum Report : std::uint64_t { sent, remote_done };  // the card's reports, in argument_b

}  // namespace

Transmitter::Transmitter(Card& card, Receiver& receiver) : card_(card), receiver_(receiver) {
  state_.flows.resize(std::size_t{Cards::links} * card.all.lanes());
  for (Flow& flow : state_.flows) {
    flow.window = static_cast<std::uint32_t>(card.all.description.receive_buffer_packets);
  }
}

void Transmitter::post(const QueuedMessage& entry, std::uint32_t link, std::uint16_t lane) {
  const std::uint32_t flow = link * card_.all.lanes() + lane;
  card_.all.state.entries.push(state_.flows[flow].entries,
                               {entry.id, entry.role, state_.next_number.value++, card_.now()});
  if (entry.role == Role::data) card_.all.messages.enter(entry.id, Stage::card_queue);
  state_.active |= std::uint64_t{1} << flow;
}

void Transmitter::post(const Credit& credit) {
  Credit numbered = credit;
  numbered.number = state_.next_number.value++;
  numbered.there = card_.now();
  card_.all.state.credits.push(state_.credits, numbered);
}

// Chooses the oldest item that can move. A message is therefore finished before a younger one begins.
NextItem Transmitter::take_turn() {
  std::uint64_t oldest = ~std::uint64_t{0};
  state_.current = none;
  if (!state_.credits.empty()) {
    oldest = card_.all.state.credits.front(state_.credits).number;
    state_.current = static_cast<std::uint32_t>(state_.flows.size());
  }
  for (std::uint64_t left = state_.active; left != 0; left &= left - 1) {
    const auto flow = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::uint64_t number = card_.all.state.entries.front(state_.flows[flow].entries).number;
    if (number > oldest || !may_send(flow)) continue;
    oldest = number;
    state_.current = flow;
  }
  if (state_.current == none) return {};
  const Description& card = card_.all.description;
  if (state_.current == state_.flows.size())
    return {card.credit, card_.all.state.credits.front(state_.credits).there};
  Flow& flow = state_.flows[state_.current];
  --flow.window;
  const QueuedMessage& entry = card_.all.state.entries.front(flow.entries);
  if (entry.role == Role::data) card_.all.messages.enter(entry.id, Stage::card);
  const bool is_first = flow.next_packet == 0;
  return {(is_first ? card.operation : Time::zero()) + card_.all.packet_time, entry.there};
}

void Transmitter::turn_over() {
  if (state_.current == state_.flows.size()) {
    ++card_.all.counters.credits;
    receiver_.credited(card_.all.state.credits.pop(state_.credits));
  } else {
    packet_crossed(state_.current);
  }
}

std::uint16_t Transmitter::data_channel(std::uint32_t flow) const {
  const std::uint16_t lanes = card_.all.lanes();
  return static_cast<std::uint16_t>(flow / lanes * 2 * lanes + flow % lanes);
}

bool Transmitter::may_send(std::uint32_t flow) {
  const QueuedMessage& entry = card_.all.state.entries.front(state_.flows[flow].entries);
  const auto refuse = [&](Stage stage) {
    if (entry.role == Role::data) card_.all.messages.enter(entry.id, stage);
    return false;
  };
  if (state_.flows[flow].window == 0) return refuse(Stage::receiver_full);
  const std::uint16_t channel = data_channel(flow);
  if (card_.all.network.injection_room(card_.node, channel) >= next_packet_of(flow).wire_bytes) return true;
  card_.all.network.await_injection_room(card_.node, channel);
  return refuse(Stage::queue_full);
}

Packet Transmitter::next_packet_of(std::uint32_t flow) const {
  Cards& all = card_.all;
  const Description& card = all.description;
  const QueuedMessage& entry = all.state.entries.front(state_.flows[flow].entries);
  const std::int64_t bytes =
      entry.role == Role::data ? all.messages.descriptor(entry.id).bytes : std::int64_t{0};
  const bool is_first = state_.flows[flow].next_packet == 0;
  Packet packet;
  packet.source = card_.node;
  packet.destination = card_.neighbours[flow / all.lanes()];
  packet.payload_bytes = static_cast<std::uint32_t>(card.packet_bytes);
  packet.wire_bytes =
      static_cast<std::uint32_t>(card.packet_bytes + card.header_bytes + (is_first ? card.control_bytes : 0));
  packet.message = packet_message(entry.id, static_cast<std::uint16_t>(flow % all.lanes()), entry.role);
  packet.sequence = state_.flows[flow].next_packet;
  packet.channel = data_channel(flow);
  packet.last = packet.sequence + 1 == packets_of(card, bytes);
  return packet;
}

void Transmitter::packet_crossed(std::uint32_t index) {
  Flow& flow = state_.flows[index];
  const Packet packet = next_packet_of(index);
  ++card_.all.counters.packets;
  ++flow.next_packet;
  card_.all.state.entries.front(flow.entries).there = card_.now();
  if (packet.last) {
    const QueuedMessage entry = card_.all.state.entries.pop(flow.entries);
    flow.next_packet = 0;
    if (flow.entries.empty()) state_.active &= ~(std::uint64_t{1} << index);
    const Descriptor& descriptor = card_.all.messages.descriptor(entry.id);
    const bool is_own = card_.all.placement.node(descriptor.source) == card_.node;
    if (entry.role == Role::data && is_own && wants_sent(descriptor)) {
      card_.all.simulation.schedule(card_.state.source, card_.now() + card_.all.description.notify_latency,
                                    *this, entry.id, sent);
    }
  }
  if (packet.last && role_of(packet) == Role::data) card_.all.messages.injects(message_of(packet));
  card_.all.network.inject(packet, card_.now());
}

void Transmitter::acknowledge(const Packet& packet, Role role) {
  Packet answer;
  answer.source = card_.node;
  answer.destination = packet.source;
  answer.wire_bytes = static_cast<std::uint32_t>(card_.all.description.control_bytes);
  answer.message = packet_message(message_of(packet), lane_of(packet), role);
  const std::uint32_t flow = card_.link_to(packet.source) * card_.all.lanes() + lane_of(packet);
  answer.channel = static_cast<std::uint16_t>(data_channel(flow) + card_.all.lanes());
  answer.last = true;
  card_.all.state.acknowledgements.push(state_.flows[flow].acknowledgements, answer);
  send_acknowledgements(flow);
}

void Transmitter::send_acknowledgements(std::uint32_t index) {
  Flow& flow = state_.flows[index];
  while (!flow.acknowledgements.empty()) {
    const Packet& next = card_.all.state.acknowledgements.front(flow.acknowledgements);
    if (card_.all.network.injection_room(card_.node, next.channel) < next.wire_bytes) {
      card_.all.network.await_injection_room(card_.node, next.channel);
      return;
    }
    ++card_.all.counters.acknowledgements;
    card_.all.network.inject(card_.all.state.acknowledgements.pop(flow.acknowledgements), card_.now());
  }
}

void Transmitter::acknowledged(const Packet& answer) {
  ++state_.flows[card_.link_to(answer.source) * card_.all.lanes() + lane_of(answer)].window;
  if (role_of(answer) != Role::completed) return;
  card_.all.simulation.schedule(card_.state.source, card_.now() + card_.all.description.notify_latency, *this,
                                message_of(answer), remote_done);
}

void Transmitter::injection_freed(std::uint16_t channel) {
  const std::uint16_t lanes = card_.all.lanes();
  const bool is_for_acknowledgements = channel / lanes % 2 == 1;
  if (is_for_acknowledgements) send_acknowledgements(channel / lanes / 2 * lanes + channel % lanes);
}

void Transmitter::handle_event(const Event& event) {
  const auto id = static_cast<MessageId>(event.argument_a);
  if (event.argument_b == sent) {
    card_.all.messages.sent(id);
  } else {
    card_.all.messages.remote_done(id);
  }
}

}  // namespace apenet::tnw
