// Engine's half that takes messages: matching, eager copies, the receiver's side of a rendezvous. The
// file that instantiates an Engine includes this one.
#pragma once

#include <algorithm>
#include <cstring>

#include "message/engine.hpp"
#include "message/engine_send.hpp"

namespace apenet::message {

template <typename P>
Receive& Engine<P>::take_receive(Inbox& inbox, const ReceiveCall& call) {
  Receive* receive = stores_.receives.take();
  receive->inbox = &inbox;
  receive->tag = call.wanted.tag;
  receive->ignore = call.wanted.ignore;
  receive->source = call.wanted.source;
  receive->source_endpoint = call.wanted.source_endpoint;
  receive->tagged = call.tagged;
  receive->multi = call.multi;
  receive->landing = call.landing;
  receive->number = call.number;
  receive->owner = call.owner;
  receive->buffer = call.buffer;
  return *receive;
}

template <typename P>
void Engine<P>::receive(Inbox& inbox, const ReceiveCall& call) {
  transport_.works_for(call.owner);
  Receive& receive = take_receive(inbox, call);
  if (call.wanted.source != any_source) receive.peer = peers_.number_of(call.wanted.source);
  Matcher& matcher = inbox.matcher(call.tagged);
  if (call.multi) {
    matcher.post(&receive);
    bool has_room = true;
    while (KeptMessage* kept = has_room ? matcher.find(call.wanted, receive.peer) : nullptr) {
      matcher.drop(kept);
      Receive& child = carve(receive, kept->message);
      has_room = !receive.retired;  // it may be gone with its last child
      consume(child, *stored_of(kept)->inbox, unstore(*stored_of(kept)));
      release(*stored_of(kept));
    }
    return;
  }
  if (KeptMessage* kept = matcher.find(call.wanted, receive.peer)) {
    matcher.drop(kept);
    if (receive.landing == Landing::direct && is_eager(kept->message.header.kind))
      receive.landing = Landing::copied;
    consume(receive, *stored_of(kept)->inbox, unstore(*stored_of(kept)));
    release(*stored_of(kept));
    return;
  }
  matcher.post(&receive);
  receives_.push_back(&receive);
  ++waiting_;
}

template <typename P>
void Engine<P>::withdraw(Receive& receive) {
  receive.inbox->matcher(receive.tagged).withdraw(&receive);
  if (receive.multi) return;
  receives_.remove(&receive);
  --waiting_;
}

template <typename P>
void Engine<P>::arrived(Inbox& inbox, const Message& message) {
  Matcher& matcher = inbox.queues().matcher(is_tagged(message.header.kind));
  Receive* receive = matcher.match(message);
  if (receive == nullptr) {
    Stored& stored = store(message);
    stored.inbox = &inbox;
    matcher.keep(&stored);
    return;
  }
  transport_.works_for(receive->owner);
  if (receive->multi) {
    consume(carve(*receive, message), inbox, message);
  } else {
    withdraw(*receive);
    consume(*receive, inbox, message);
  }
}

// The part of a multi-receive's buffer that this message fills.
template <typename P>
Receive& Engine<P>::carve(Receive& parent, const Message& message) {
  const std::uint64_t left = parent.buffer.length - parent.used;
  const std::uint64_t part = std::min(left, message.length());
  ReceiveCall call;
  call.buffer = one_piece(parent.buffer.pieces[0].address + parent.used, part);
  call.buffer.gpu_pieces = parent.buffer.gpu_pieces;
  call.tagged = parent.tagged;
  call.owner = parent.owner;
  Receive& child = take_receive(*parent.inbox, call);
  child.parent = &parent;
  ++parent.children;
  parent.used += part;
  const std::uint64_t least = std::max<std::uint64_t>(parent.inbox->min_multi_receive(), 1);
  if (parent.buffer.length - parent.used < least) {
    parent.retired = true;
    withdraw(parent);
  }
  return child;
}

// Gives the message to the receive, which is in no queue any more.
template <typename P>
void Engine<P>::consume(Receive& receive, Inbox& reached, const Message& message) {
  charge_receive(message);
  receive.inbox = &reached;
  receive.source = message.source;
  receive.tag = message.header.tag;
  receive.data = message.header.data;
  receive.has_data = message.header.has_data != 0;
  receive.length = message.length();
  receive.expected = std::min(receive.length, receive.buffer.length);
  transport_.matched(receive, message);
  if (is_ready(message.header.kind)) {
    const SoftwareCosts& costs = transport_.costs(rail_);
    // The library above has published other buffers.
    const bool publishes = receive.expected > 0 && receive.landing == Landing::copied;
    transport_.charge(costs.rendezvous + (publishes ? costs.publish : Time::zero()));
    clear(receive, message);
    transport_.return_slot(message);
    if (receive.expected == 0) finish(receive);
    return;
  }
  if constexpr (P::moves_bytes) scatter(receive.buffer, 0, message.payload, receive.expected);
  const std::uint64_t to_gpu = part_of(receive.buffer, 0, receive.expected).gpu_bytes();
  charge_gpu_copy(to_gpu);
  if (!lands_directly(receive, message)) charge_copy(receive.expected - to_gpu);
  transport_.return_slot(message);
  finish(receive);
}

// A card finds a published buffer for what it writes to memory itself; mailboxes and receive rings are read
// by the CPU.
template <typename P>
bool Engine<P>::lands_directly(const Receive& receive, const Message& message) const {
  if (receive.landing != Landing::direct) return receive.landing == Landing::copied_above;
  const bool is_written_by_card = message.mailbox_packets == 0 && transport_.card(rail_).needs_credit == 0;
  return is_written_by_card && !message.in_pieces && !goes_through_memory(message.source);
}

// Taking a message, and later giving its buffer back to the card.
template <typename P>
void Engine<P>::charge_receive(const Message& message) {
  const SoftwareCosts& costs = transport_.costs(rail_);
  transport_.charge(costs.receive + costs.further_receives(message.mailbox_packets));
  transport_.defer_cost(costs.after_receive);
}

// Tells the sender of a rendezvous where to put the payload.
template <typename P>
void Engine<P>::clear(Receive& receive, const Message& message) {
  ClearBody body;
  body.transfer = decode_ready({message.payload, message.payload_bytes}).transfer;
  body.receive = receive.id;
  std::uint64_t left = receive.expected;
  for (std::uint32_t i = 0; i < receive.buffer.count && left > 0; ++i) {
    const Segment& piece = receive.buffer.pieces[i];
    const std::uint64_t part = std::min(left, piece.length);
    if (part == 0) continue;
    if (receive.buffer.is_in_gpu(i) && card_reaches_gpus(message.source))
      body.gpu_segments |= 1U << body.segment_count;
    body.segments[body.segment_count++] = {piece.address, part};
    left -= part;
  }
  MessageHeader header;
  header.kind = MessageKind::clear;
  header.source_endpoint = receive.inbox->number();
  header.target_endpoint = message.header.source_endpoint;
  transport_.charge(transport_.costs(rail_).rendezvous);
  post_control(message.source, header,
               {reinterpret_cast<const std::byte*>(&body), clear_bytes(body.segment_count)});
  give_credit(message.source, static_cast<std::int64_t>(receive.expected));
}

// So many bytes more may come from there, in messages as large as the card's; nothing where no message waits
// for that.
template <typename P>
void Engine<P>::give_credit(std::uint32_t source, std::int64_t bytes) {
  const CardLimits& card = transport_.card(rail_);
  if (card.needs_credit == 0) return;
  for (; bytes > 0; bytes -= card.max_message_bytes) {
    transport_.charge(transport_.costs(rail_).after_receive);
    post_credit(source, std::min(bytes, card.max_message_bytes));
  }
}

template <typename P>
void Engine<P>::post_credit(std::uint32_t source, std::int64_t bytes) {
  Request request;
  request.target = source;
  request.verb = RequestVerb::credit;
  request.bytes = bytes;
  request.rail = rail_;
  transport_.post(request);
}

// A ring's place is free again when the library has taken the message out of it. The processor's time for
// that is after_receive, which is charged with the receive.
template <typename P>
void Engine<P>::give_rings_back() {
  for (const auto& [source, bytes] : taken_from_rings_) post_credit(source, bytes);
  taken_from_rings_.clear();
}

// A put of a rendezvous, or one that tells its target.
template <typename P>
void Engine<P>::put_arrived(const Event& event) {
  const PutNotice notice = PutNotice::decode(event.immediate);
  if (notice.kind != PutNoticeKind::rendezvous) {
    transport_.charge(transport_.costs(rail_).completion);
    transport_.written(transport_.inbox(notice.endpoint), event, notice);
    return;
  }
  Receive* receive = stores_.receives.find(notice.value);
  if (receive == nullptr || receive->received >= receive->expected) {
    transport_.charge(transport_.costs(rail_).completion);
    throw MalformedMessage("a put for no receive that was announced");
  }
  transport_.works_for(receive->owner);
  transport_.charge(transport_.costs(rail_).completion);
  receive->failed = receive->failed || event.fault != AccessFault::none;
  receive->received += static_cast<std::uint64_t>(event.bytes);
  if (receive->received < receive->expected) return;
  charge_staging(part_of(receive->buffer, 0, receive->expected), receive->source);
  finish(*receive);
}

template <typename P>
void Engine<P>::finish(Receive& receive) {
  bool ends_multi = false;
  if (Receive* parent = receive.parent) {
    ends_multi = --parent->children == 0 && parent->retired;
    if (ends_multi) stores_.receives.give_back(parent);
  }
  transport_.received(receive, ends_multi);
  stores_.receives.give_back(&receive);
}

template <typename P>
Receive* Engine<P>::cancel(Inbox& inbox, bool tagged, const void* context) {
  Receive* receive = inbox.matcher(tagged).find_posted(
      [context](const Receive& posted) { return posted.owner.context == context; });
  if (receive != nullptr) withdraw(*receive);
  return receive;
}

// What is being put into it ends first.
template <typename P>
void Engine<P>::forget_receive(Receive& receive) {
  if (receive.children > 0) {
    receive.retired = true;
  } else {
    stores_.receives.give_back(&receive);
  }
}

template <typename P>
typename Engine<P>::Stored* Engine<P>::find(Inbox& inbox, const Wanted& wanted) {
  const std::uint32_t peer = wanted.source != any_source ? peers_.number_of(wanted.source) : 0;
  return stored_of(inbox.matcher(true).find(wanted, peer));
}

template <typename P>
void Engine<P>::discard_kept(Stored& kept) {
  kept.inbox->queues().matcher(is_tagged(kept.message.header.kind)).drop(&kept);
  discard(unstore(kept));
  release(kept);
}

template <typename P>
void Engine<P>::claim(Stored& kept, void* context) {
  kept.inbox->queues().matcher(true).drop(&kept);
  kept.claim = context;
  claimed_.push_back(&kept);
}

template <typename P>
typename Engine<P>::Stored* Engine<P>::claimed(const Inbox& inbox, const void* context) {
  Stored* kept = stored_of(claimed_.front());
  while (kept != nullptr && (kept->claim != context || kept->inbox != &inbox))
    kept = stored_of(claimed_.next(kept));
  return kept;
}

template <typename P>
void Engine<P>::discard_claimed(Stored& kept) {
  claimed_.remove(&kept);
  discard(unstore(kept));
  release(kept);
}

template <typename P>
void Engine<P>::receive_claimed(Inbox& inbox, const ReceiveCall& call, Stored& kept) {
  claimed_.remove(&kept);
  consume(take_receive(inbox, call), inbox, unstore(kept));
  release(kept);
}

// Nobody will ever receive it: its sender need not wait.
template <typename P>
void Engine<P>::discard(const Message& message) {
  if (is_ready(message.header.kind)) {
    ClearBody body;
    body.transfer = decode_ready({message.payload, message.payload_bytes}).transfer;
    MessageHeader header;
    header.kind = MessageKind::clear;
    header.target_endpoint = message.header.source_endpoint;
    post_control(message.source, header, {reinterpret_cast<const std::byte*>(&body), clear_bytes(0)});
  }
  transport_.return_slot(message);
}

template <typename P>
void Engine<P>::share_queues(Inbox& inbox, Inbox& other) {
  inbox.share_queues(other);
  for (const bool tagged : {true, false}) {
    Matcher& own = inbox.matcher(tagged);
    while (KeptMessage* kept = own.oldest()) {
      own.drop(kept);
      arrived(inbox, unstore(*stored_of(kept)));
      release(*stored_of(kept));
    }
  }
}

template <typename P>
void Engine<P>::forget(Inbox& inbox) {
  transfers_.for_each([&inbox](Transfer* transfer) {
    if (transfer->inbox == &inbox) transfer->inbox = nullptr;
  });
  for (const bool tagged : {true, false}) {
    Matcher& matcher = inbox.matcher(tagged);
    while (Receive* receive = matcher.find_posted([](const Receive&) { return true; })) {
      withdraw(*receive);
      forget_receive(*receive);
    }
    while (KeptMessage* kept = matcher.oldest()) discard_kept(*stored_of(kept));
    if (&inbox.queues() == &inbox) continue;
    Matcher& shared = inbox.queues().matcher(tagged);
    while (KeptMessage* kept = shared.oldest_for(inbox.number())) discard_kept(*stored_of(kept));
  }
  for (KeptMessage* kept = claimed_.front(); kept != nullptr;) {
    KeptMessage* next = claimed_.next(kept);
    if (stored_of(kept)->inbox == &inbox) discard_claimed(*stored_of(kept));
    kept = next;
  }
  stores_.receives.for_each_used([&inbox](Receive& receive) {
    if (receive.inbox == &inbox) receive.inbox = nullptr;  // its rendezvous ends unreported
  });
}

}  // namespace apenet::message
