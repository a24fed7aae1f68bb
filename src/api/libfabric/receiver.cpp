#include "api/libfabric/receiver.hpp"

#include <algorithm>
#include <cstring>

#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/port.hpp"

namespace apenet::libfabric {
namespace {

void scatter(const Buffer& to, const std::byte* from, std::size_t bytes) {
  for (std::uint32_t i = 0; i < to.count && bytes > 0; ++i) {
    const std::size_t part = std::min(bytes, to.pieces[i].iov_len);
    if (part > 0) std::memcpy(to.pieces[i].iov_base, from, part);
    from += part;
    bytes -= part;
  }
}

std::uint64_t data_flag(bool has_data) {
  return has_data ? FI_REMOTE_CQ_DATA : 0;
}

}  // namespace

Receive& Receiver::take(Endpoint& endpoint, const ReceiveCall& call) {
  Receive* receive = receives_.take();
  receive->endpoint = &endpoint;
  receive->tag = call.wanted.tag;
  receive->ignore = call.wanted.ignore;
  receive->source = call.wanted.source;
  receive->source_endpoint = call.wanted.source_endpoint;
  receive->tagged = call.tagged;
  receive->reports = call.reports;
  receive->multi = call.multi;
  receive->context = call.context;
  receive->buffer = call.buffer;
  return *receive;
}

void Receiver::post(Endpoint& endpoint, const ReceiveCall& call) {
  Receive& receive = take(endpoint, call);
  if (Recorder* recorder = port_.recorder(); recorder != nullptr && !call.multi)
    receive.recorded = recorder->received();
  Matcher& matcher = endpoint.matcher(call.tagged);
  if (call.multi) {
    matcher.post(&receive);
    bool has_room = true;
    while (StoredMessage* kept = has_room ? matcher.find(call.wanted) : nullptr) {
      matcher.drop(kept);
      Receive& child = carve(receive, kept->message);
      has_room = !receive.retired;  // it may be gone with its last child
      consume(child, port_.unstore(*kept));
      port_.release(kept);
    }
    return;
  }
  if (StoredMessage* kept = matcher.find(call.wanted)) {
    matcher.drop(kept);
    consume(receive, port_.unstore(*kept));
    port_.release(kept);
    return;
  }
  matcher.post(&receive);
  in_order_.push_back(&receive);
  ++waiting_;
}

void Receiver::withdraw(Receive& receive) {
  receive.endpoint->matcher(receive.tagged).withdraw(&receive);
  if (receive.multi) return;
  in_order_.remove(&receive);
  --waiting_;
}

void Receiver::arrived(Endpoint& endpoint, const Message& message) {
  Matcher& matcher = endpoint.matcher(is_tagged(message.header.kind));
  Receive* receive = matcher.match(message);
  if (receive == nullptr) {
    StoredMessage* stored = port_.store(message);
    stored->endpoint = &endpoint;
    matcher.keep(stored);
  } else if (receive->multi) {
    consume(carve(*receive, message), message);
  } else {
    withdraw(*receive);
    consume(*receive, message);
  }
}

// The part of a multi-receive's buffer that this message fills.
Receive& Receiver::carve(Receive& parent, const Message& message) {
  const std::size_t left = parent.buffer.length - parent.used;
  const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, message.length()));
  ReceiveCall call;
  call.buffer = make_buffer(static_cast<std::byte*>(parent.buffer.pieces[0].iov_base) + parent.used, part);
  call.tagged = parent.tagged;
  call.reports = parent.reports;
  call.context = parent.context;
  Receive& child = take(*parent.endpoint, call);
  child.parent = &parent;
  ++parent.children;
  parent.used += part;
  const std::size_t least = std::max<std::size_t>(parent.endpoint->min_multi_receive(), 1);
  if (parent.buffer.length - parent.used < least) {
    parent.retired = true;
    withdraw(parent);
  }
  return child;
}

// Gives the message to the receive, which is in no queue any more.
void Receiver::consume(Receive& receive, const Message& message) {
  const ipc::SoftwareCosts& costs = client_.costs();
  client_.charge_receive(message.mailbox_packets);
  port_.charge_later(costs.after_receive_ps);
  receive.tag = message.header.tag;
  receive.data = message.header.data;
  receive.has_data = message.header.has_data != 0;
  receive.address = receive.endpoint->address_of(message);
  receive.length = message.length();
  if (Recorder* recorder = port_.recorder()) {
    // What was posted before virtual time began, and a part of a multi-receive, counts from here.
    if (receive.recorded == 0) receive.recorded = recorder->received();
    recorder->matched(receive.recorded, message.source, receive.tagged, message.header.tag, receive.length);
  }
  receive.expected = std::min<std::uint64_t>(receive.length, receive.buffer.length);
  if (is_ready(message.header.kind)) {
    client_.charge(costs.rendezvous_ps + (receive.expected > 0 ? costs.publish_ps : 0));
    clear(receive, message);
    port_.return_slot(message);
    if (receive.expected == 0) finish(receive);
    return;
  }
  scatter(receive.buffer, message.payload, receive.expected);
  client_.charge_copy(static_cast<std::int64_t>(receive.expected));
  port_.return_slot(message);
  finish(receive);
}

// Tells the sender of a rendezvous where to put the payload.
void Receiver::clear(Receive& receive, const Message& message) {
  ClearBody body;
  body.transfer = decode_ready({message.payload, message.payload_bytes}).transfer;
  body.receive = receive.id;
  std::uint64_t left = receive.expected;
  for (std::uint32_t i = 0; i < receive.buffer.count && left > 0; ++i) {
    const iovec& piece = receive.buffer.pieces[i];
    const std::uint64_t part = std::min<std::uint64_t>(left, piece.iov_len);
    if (part == 0) continue;
    body.segments[body.segment_count++] = {reinterpret_cast<std::uint64_t>(piece.iov_base), part};
    left -= part;
  }
  MessageHeader header;
  header.kind = MessageKind::clear;
  header.source_endpoint = receive.endpoint->number();
  header.target_endpoint = message.header.source_endpoint;
  client_.charge(client_.costs().rendezvous_ps);
  port_.post_control(message.source, header,
                     {reinterpret_cast<const std::byte*>(&body), clear_bytes(body.segment_count)});
  port_.give_credit(message.source, static_cast<std::int64_t>(receive.expected));
}

void Receiver::put_arrived(const ipc::Event& event) {
  const PutNotice notice = PutNotice::decode(event.immediate);
  client_.charge(client_.costs().completion_ps);
  if (notice.kind != PutNotice::Kind::rendezvous) {
    Endpoint* endpoint = port_.endpoint(notice.endpoint);
    if (endpoint == nullptr || event.fault != ipc::AccessFault::none) return;
    endpoint->accessed(FI_REMOTE_WRITE, event.key);
    if (notice.kind == PutNotice::Kind::remote_data) {
      endpoint->received_data(FI_RMA | FI_REMOTE_WRITE, static_cast<std::size_t>(event.bytes), notice.value);
    }
    return;
  }
  Receive* receive = receives_.find(notice.value);
  if (receive == nullptr || receive->received >= receive->expected) {
    throw MalformedMessage("a put for no receive that was announced");
  }
  receive->failed = receive->failed || event.fault != ipc::AccessFault::none;
  receive->received += static_cast<std::uint64_t>(event.bytes);
  if (receive->received >= receive->expected) finish(*receive);
}

void Receiver::read_from(Endpoint* endpoint, const Message& message) {
  client_.charge_receive(message.mailbox_packets);
  port_.charge_later(client_.costs().after_receive_ps);
  if (endpoint != nullptr) endpoint->accessed(FI_REMOTE_READ, message.header.tag);
}

void Receiver::finish(Receive& receive) {
  if (receive.recorded != 0) port_.recorder()->ended(receive.recorded);
  CompletionEntry entry;
  entry.context = receive.context;
  entry.flags = FI_RECV | (receive.tagged ? FI_TAGGED : FI_MSG) | data_flag(receive.has_data);
  entry.length = static_cast<std::size_t>(receive.expected);
  entry.buffer = receive.buffer.count > 0 ? receive.buffer.pieces[0].iov_base : nullptr;
  entry.data = receive.data;
  entry.tag = receive.tag;
  entry.source = receive.address;
  if (receive.failed) {
    entry.error = FI_EFAULT;
    entry.detail = static_cast<int>(ErrorDetail::bad_address);
  } else if (receive.expected < receive.length) {
    entry.error = FI_ETRUNC;
    entry.detail = static_cast<int>(ErrorDetail::truncated);
    entry.missing = static_cast<std::size_t>(receive.length - receive.expected);
  }
  bool reports = receive.reports;
  if (Receive* parent = receive.parent) {
    if (--parent->children == 0 && parent->retired) {
      entry.flags |= FI_MULTI_RECV;
      reports = true;
      receives_.give_back(parent);
    }
  }
  if (receive.endpoint != nullptr) receive.endpoint->received(entry, reports);
  receives_.give_back(&receive);
}

void Receiver::report_peeked(Endpoint& endpoint, const Message& message, void* context) {
  CompletionEntry entry;
  entry.context = context;
  entry.flags = FI_RECV | FI_TAGGED | data_flag(message.header.has_data != 0);
  entry.length = static_cast<std::size_t>(message.length());
  entry.data = message.header.data;
  entry.tag = message.header.tag;
  entry.source = endpoint.address_of(message);
  endpoint.receive_cq()->push(entry);
}

void Receiver::peek(Endpoint& endpoint, const Wanted& wanted, std::uint64_t flags, void* context) {
  Matcher& matcher = endpoint.matcher(true);
  StoredMessage* kept = matcher.find(wanted);
  // MPI_Probe goes on to wait for whatever comes, not only for this message: it may not be held here.
  const bool waits = client_.progress().waits();
  while (kept == nullptr && (waits ? port_.progress_visible() : port_.progress()))
    kept = matcher.find(wanted);
  if (kept == nullptr) {
    CompletionEntry entry;
    entry.context = context;
    entry.flags = FI_RECV | FI_TAGGED;
    entry.tag = wanted.tag;
    entry.error = FI_ENOMSG;
    entry.detail = static_cast<int>(ErrorDetail::no_message);
    endpoint.receive_cq()->push(entry);
    return;
  }
  report_peeked(endpoint, kept->message, context);
  if ((flags & FI_DISCARD) != 0) {
    matcher.drop(kept);
    discard(port_.unstore(*kept));
    port_.release(kept);
  } else if ((flags & FI_CLAIM) != 0) {
    matcher.drop(kept);
    kept->claim = context;
    claimed_.push_back(kept);
  }
}

bool Receiver::claimed(Endpoint& endpoint, const ReceiveCall& call, bool drop) {
  StoredMessage* kept = claimed_.front();
  while (kept != nullptr && (kept->claim != call.context || kept->endpoint != &endpoint))
    kept = claimed_.next(kept);
  if (kept == nullptr) return false;
  claimed_.remove(kept);
  const Message message = port_.unstore(*kept);
  if (drop) {
    report_peeked(endpoint, message, call.context);
    discard(message);
  } else {
    consume(take(endpoint, call), message);
  }
  port_.release(kept);
  return true;
}

void Receiver::discard(const Message& message) {
  if (is_ready(message.header.kind)) {
    ClearBody body;
    body.transfer = decode_ready({message.payload, message.payload_bytes}).transfer;
    MessageHeader header;
    header.kind = MessageKind::clear;
    header.target_endpoint = message.header.source_endpoint;
    port_.post_control(message.source, header, {reinterpret_cast<const std::byte*>(&body), clear_bytes(0)});
  }
  port_.return_slot(message);
}

bool Receiver::cancel(Endpoint& endpoint, void* context) {
  for (const bool tagged : {true, false}) {
    Receive* receive = endpoint.matcher(tagged).find_context(context);
    if (receive == nullptr) continue;
    withdraw(*receive);
    CompletionEntry entry;
    entry.context = context;
    entry.flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG);
    entry.tag = receive->tag;
    entry.error = FI_ECANCELED;
    entry.detail = static_cast<int>(ErrorDetail::cancelled);
    endpoint.received(entry, true);
    if (receive->children > 0) {
      receive->retired = true;  // what is being put into it ends first
    } else {
      receives_.give_back(receive);
    }
    return true;
  }
  return false;
}

void Receiver::forget(Endpoint& endpoint) {
  for (const bool tagged : {true, false}) {
    Matcher& matcher = endpoint.matcher(tagged);
    while (Receive* receive = matcher.any_posted()) {
      withdraw(*receive);
      if (receive->children == 0) {
        receives_.give_back(receive);
      } else {
        receive->retired = true;
      }
    }
    while (StoredMessage* kept = matcher.oldest()) {
      matcher.drop(kept);
      discard(port_.unstore(*kept));
      port_.release(kept);
    }
  }
  StoredMessage* kept = claimed_.front();
  while (kept != nullptr) {
    StoredMessage* next = claimed_.next(kept);
    if (kept->endpoint == &endpoint) {
      claimed_.remove(kept);
      discard(port_.unstore(*kept));
      port_.release(kept);
    }
    kept = next;
  }
  receives_.for_each_used([&endpoint](Receive& receive) {
    if (receive.endpoint == &endpoint) receive.endpoint = nullptr;  // its rendezvous ends unreported
  });
}

}  // namespace apenet::libfabric
