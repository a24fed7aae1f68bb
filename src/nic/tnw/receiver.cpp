#include "nic/tnw/receiver.hpp"

#include <bit>

#include "nic/tnw/transmitter.hpp"

namespace apenet::tnw {

Receiver::Receiver(Card& card, Transmitter& transmitter, Forwarder& forwarder)
    : card_(card), transmitter_(transmitter), forwarder_(forwarder) {
  state_.flows.resize(std::size_t{Cards::links} * card.all.lanes());
}

std::uint32_t Receiver::flow_of(const Packet& packet) const {
  return card_.link_to(packet.source) * card_.all.lanes() + lane_of(packet);
}

Receiver::Account& Receiver::account(ProcessId receiver, ProcessId sender, std::uint16_t channel) {
  const std::uint64_t name =
      std::uint64_t{sender} << 32 | std::uint64_t{card_.all.placement.port(receiver)} << 16 | channel;
  const std::int64_t first = card_.all.is_ring(channel) ? card_.all.first_credit_bytes : 0;
  return state_.accounts.try_emplace(name, Account{first, false, {}}).first->second;
}

void Receiver::packet_arrived(const Packet& packet) {
  card_.all.network.consumed(card_.node, packet);  // the card has its own receive buffer
  const std::uint32_t flow = flow_of(packet);
  card_.all.state.arrivals.push(state_.flows[flow].arrivals,
                                {packet, state_.next_number.value++, card_.now()});
  if (packet.last && role_of(packet) == Role::data)
    card_.all.messages.enter(message_of(packet), Stage::card_queue);
  if (!state_.flows[flow].waits_for_credit) state_.active |= std::uint64_t{1} << flow;
}

// Chooses the oldest packet that can move.
NextItem Receiver::take_turn() {
  std::uint64_t oldest = ~std::uint64_t{0};
  state_.current = none;
  for (std::uint64_t left = state_.active; left != 0; left &= left - 1) {
    const auto flow = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::uint64_t number = card_.all.state.arrivals.front(state_.flows[flow].arrivals).number;
    if (number > oldest || !has_credit(flow)) continue;
    oldest = number;
    state_.current = flow;
  }
  if (state_.current == none) return {};
  const Arrival& arrival = card_.all.state.arrivals.front(state_.flows[state_.current].arrivals);
  if (arrival.packet.last && role_of(arrival.packet) == Role::data)
    card_.all.messages.enter(message_of(arrival.packet), Stage::card);
  return {(arrival.packet.last ? card_.all.description.operation : Time::zero()) + card_.all.packet_time,
          arrival.there};
}

// Checks the credit for the first packet of a message to a process of this node. All other packets need none.
bool Receiver::has_credit(std::uint32_t flow) {
  const Packet& packet = card_.all.state.arrivals.front(state_.flows[flow].arrivals).packet;
  if (packet.sequence != 0 || lane_of(packet) == card_.all.forward_lane()) return true;
  const Descriptor& descriptor = card_.all.messages.descriptor(message_of(packet));
  Account& given = account(descriptor.target, descriptor.source, descriptor.channel);
  if (given.bytes >= credit_of(descriptor.bytes)) return true;
  ++card_.all.counters.waits_for_credit;
  given.is_awaited = true;
  card_.all.messages.enter(message_of(packet), Stage::receiver_full);
  state_.flows[flow].waits_for_credit = true;
  state_.active &= ~(std::uint64_t{1} << flow);
  return false;
}

void Receiver::turn_over() {
  Flow& flow = state_.flows[state_.current];
  const Packet packet = card_.all.state.arrivals.pop(flow.arrivals).packet;
  if (flow.arrivals.empty()) state_.active &= ~(std::uint64_t{1} << state_.current);
  const Descriptor& descriptor = card_.all.messages.descriptor(message_of(packet));
  const bool is_direct = lane_of(packet) != card_.all.forward_lane();
  const bool tells = is_direct && packet.last && wants_remote_done(descriptor);
  if (is_direct && packet.sequence == 0) {
    account(descriptor.target, descriptor.source, descriptor.channel).bytes -= credit_of(descriptor.bytes);
  }
  transmitter_.acknowledge(packet, tells ? Role::completed : Role::acknowledged);
  if (!packet.last) return;
  card_.all.simulation.schedule(card_.state.source, card_.now() + card_.all.description.notify_latency, *this,
                                packet.message);
}

void Receiver::handle_event(const Event& event) {
  Packet packet;
  packet.message = event.argument_a;
  if (lane_of(packet) == card_.all.forward_lane()) {
    forwarder_.arrived(message_of(packet), role_of(packet));
  } else {
    card_.all.messages.delivered(message_of(packet));
  }
}

void Receiver::dispatch(MessageId id) {
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  Account& given = account(descriptor.target, descriptor.source, descriptor.channel);
  if (given.in_memory.empty() && given.bytes >= credit_of(descriptor.bytes)) {
    given.bytes -= credit_of(descriptor.bytes);
    complete(id);
    return;
  }
  ++card_.all.counters.waits_for_credit;
  card_.all.state.waiting.push(given.in_memory, id);
}

void Receiver::credited(const Credit& credit) {
  Account& given = account(credit.receiver, credit.sender, credit.channel);
  given.bytes += credit_of(credit.bytes);
  while (!given.in_memory.empty()) {
    const MessageId id = card_.all.state.waiting.front(given.in_memory);
    const std::int64_t needed = credit_of(card_.all.messages.descriptor(id).bytes);
    if (given.bytes < needed) break;
    given.bytes -= needed;
    card_.all.state.waiting.pop(given.in_memory);
    complete(id);
  }
  if (!given.is_awaited) return;
  given.is_awaited = false;
  const std::uint32_t lane = card_.all.lane_of(credit.sender, credit.channel);
  const std::uint32_t flow =
      card_.link_to(card_.all.placement.node(credit.sender)) * card_.all.lanes() + lane;
  state_.flows[flow].waits_for_credit = false;
  state_.active |= std::uint64_t{1} << flow;
}

void Receiver::complete(MessageId id) {
  const bool tells = wants_remote_done(card_.all.messages.descriptor(id));
  card_.all.messages.delivered(id);
  if (tells) forwarder_.confirm(id);
}

}  // namespace apenet::tnw
