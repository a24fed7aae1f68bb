// What an Engine does with an event: checks it, brings messages into their order, hands each to its half. The
// file that instantiates an Engine includes this one.
#pragma once

#include <cstring>
#include <memory>

#include "message/engine.hpp"
#include "message/engine_receive.hpp"
#include "message/engine_send.hpp"

namespace apenet::message {

template <typename P>
void Engine<P>::take(const Event& event) {
  switch (event.kind) {
    case EventKind::arrived:
      if (transport_.card(rail_).needs_credit != 0) taken_from_rings_.emplace_back(event.source, event.bytes);
      take_in_turn(unpack(event));
      return;
    case EventKind::put_arrived:
      put_arrived(event);
      return;
    case EventKind::sent:
    case EventKind::remote_done:
    case EventKind::got:
      reported(event);
      return;
    case EventKind::refused:
      return;  // the other events of the put name the fault, too
    case EventKind::served:
      break;  // the engine does not ask for it
  }
  throw MalformedMessage("an event of unknown kind");
}

template <typename P>
Message Engine<P>::unpack(const Event& event) {
  if (event.source >= transport_.rank_count())
    throw MalformedMessage("a message from a rank that does not exist");
  if (event.inline_length > inline_bytes) throw MalformedMessage("a message longer than its event");
  Message message;
  message.source = event.source;
  message.peer = peers_.number_of(event.source);
  message.rail = event.rail;
  message.mailbox_packets = event.mailbox_packets;
  if (event.slot != no_slot) {
    message.payload = transport_.slot_of(event);
    if (message.payload == nullptr || event.slot_length > slot_bytes)
      throw MalformedMessage("a message in a slot that does not exist");
    message.slot = event.slot;
  }
  try {
    message.header = decode_header({event.inline_data, event.inline_length});
    find_payload(event, message);
    if (is_ready(message.header.kind))
      static_cast<void>(decode_ready({message.payload, message.payload_bytes}));
    // Whoever keeps the message copies its payload, as that of an event without a slot.
    if (is_event_place(message.slot)) message.slot = no_slot;
    const auto ahead = static_cast<std::int32_t>(message.header.sequence - peers_[message.peer].next_in);
    if (ahead < 0) throw MalformedMessage("a message that has come before");
  } catch (const MalformedMessage&) {
    transport_.return_slot(message);
    throw;
  }
  return message;
}

template <typename P>
void Engine<P>::find_payload(const Event& event, Message& message) {
  if constexpr (!P::moves_bytes) {
    message.payload = event.inline_data + sizeof(MessageHeader);
    message.payload_bytes = static_cast<std::size_t>(event.bytes) - sizeof(MessageHeader);
    return;
  }
  if (message.slot == no_slot) {
    message.payload = event.inline_data + sizeof(MessageHeader);
    message.payload_bytes = event.inline_length - sizeof(MessageHeader);
    return;
  }
  if (event.inline_length != sizeof(MessageHeader)) throw MalformedMessage("a message in two places");
  if (is_control(message.header.kind)) throw MalformedMessage("a message of the library in a slot");
  message.payload_bytes = event.slot_length;
}

template <typename P>
void Engine<P>::take_in_turn(const Message& message) {
  const std::uint32_t peer = message.peer;
  if (message.header.sequence != peers_[peer].next_in) {
    peers_[peer].held.push_back(&store(message));
    ++held_;
    return;
  }
  ++peers_[peer].next_in;
  deliver(message);
  // A delivery may meet new peers, which moves the conversations.
  KeptMessage* held = peers_[peer].held.front();
  while (held != nullptr) {
    if (held->message.header.sequence != peers_[peer].next_in) {
      held = peers_[peer].held.next(held);
      continue;
    }
    ++peers_[peer].next_in;
    peers_[peer].held.remove(held);
    --held_;
    deliver(unstore(*stored_of(held)));
    release(*stored_of(held));
    held = peers_[peer].held.front();
  }
}

// Collects the pieces of an eager message, which come one after the other, and delivers the whole.
template <typename P>
void Engine<P>::assemble(const Message& message) {
  Conversation& source = peers_[message.peer];
  const std::uint32_t to_come = message.header.pieces_to_come;
  const bool is_first = message.header.kind != MessageKind::piece;
  const std::size_t room = is_first ? message.payload_bytes * (to_come + 1) : source.room_left;
  const bool is_next = is_first
                           ? source.in_pieces == nullptr
                           : source.in_pieces != nullptr &&
                                 stored_of(source.in_pieces)->message.header.pieces_to_come == to_come + 1;
  if (!is_next || room > static_cast<std::size_t>(most_eager_bytes) || message.payload_bytes > room) {
    transport_.return_slot(message);
    throw MalformedMessage("a piece that does not belong to the message before it");
  }
  Stored& whole = is_first ? *stores_.stored.take() : *stored_of(source.in_pieces);
  if (is_first) {
    whole.message = message;
    whole.message.slot = no_slot;
    whole.message.payload_bytes = 0;
    whole.message.in_pieces = true;
    if constexpr (P::moves_bytes) whole.copy = std::make_unique<std::byte[]>(room);
    whole.message.payload = P::moves_bytes ? whole.copy.get() : whole.small;
    source.in_pieces = &whole;
  }
  if constexpr (P::moves_bytes)
    std::memcpy(whole.copy.get() + whole.message.payload_bytes, message.payload, message.payload_bytes);
  transport_.return_slot(message);
  whole.message.payload_bytes += message.payload_bytes;
  whole.message.mailbox_packets = message.mailbox_packets;
  whole.message.header.pieces_to_come = message.header.pieces_to_come;
  source.room_left = room - message.payload_bytes;
  if (to_come > 0) {
    transport_.works_for({});
    charge_receive(message);
    return;
  }
  source.in_pieces = nullptr;  // first: a delivery may meet new peers, which moves the conversations
  deliver(whole.message);
  release(whole);
}

template <typename P>
void Engine<P>::deliver(const Message& message) {
  if (message.header.kind == MessageKind::clear) {
    cleared(message);
    return;
  }
  if (message.header.kind == MessageKind::piece ||
      (is_eager(message.header.kind) && message.header.pieces_to_come > 0)) {
    assemble(message);
    return;
  }
  Inbox* inbox = transport_.inbox(message.header.target_endpoint);
  switch (message.header.kind) {
    case MessageKind::request:
    case MessageKind::answer:
      transport_.control_arrived(inbox, message);
      return;
    case MessageKind::read_notice:
      charge_receive(message);
      transport_.was_read(inbox, message);
      return;
    default:
      break;
  }
  if (inbox == nullptr) {
    discard(message);
  } else {
    arrived(*inbox, message);
  }
}

// Unmatched messages of one source that may keep their slots: past it they are copied out, so that a receiver
// that is behind does not starve the sender's arena.
inline constexpr std::uint32_t kept_slots_per_source = 64;

template <typename P>
typename Engine<P>::Stored& Engine<P>::store(const Message& message) {
  Stored& stored = *stores_.stored.take();
  stored.message = message;
  Conversation& source = peers_[message.peer];
  if (message.slot != no_slot && source.slots_kept < kept_slots_per_source) {
    ++source.slots_kept;
    return stored;
  }
  std::byte* room = stored.small;
  std::size_t bytes = message.payload_bytes;
  if constexpr (P::moves_bytes) {
    if (bytes > room_bytes) {
      stored.copy = std::make_unique<std::byte[]>(bytes);
      room = stored.copy.get();
    }
  } else {
    bytes = std::min(bytes, room_bytes);  // there is nothing of a payload
  }
  if (bytes > 0) std::memcpy(room, message.payload, bytes);
  stored.message.payload = room;
  transport_.return_slot(message);
  stored.message.slot = no_slot;
  return stored;
}

template <typename P>
Message Engine<P>::unstore(Stored& stored) {
  const Message message = stored.message;
  if (message.slot != no_slot) --peers_[message.peer].slots_kept;
  stored.message.slot = no_slot;
  return message;
}

template <typename P>
void Engine<P>::post_control(std::uint32_t target, MessageHeader header, std::span<const std::byte> body) {
  header.sequence = peers_[peers_.number_of(target)].next_out++;
  Request request;
  request.target = target;
  request.inline_length = static_cast<std::uint32_t>(sizeof(header) + body.size());
  request.bytes = request.inline_length;
  std::memcpy(request.inline_data, &header, sizeof(header));
  if (!body.empty()) std::memcpy(request.inline_data + sizeof(header), body.data(), body.size());
  transport_.charge(transport_.costs(rail_).send);
  post_send(request);
}

}  // namespace apenet::message
