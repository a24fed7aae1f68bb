#include "api/libfabric/sender.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/port.hpp"

namespace apenet::libfabric {
namespace {

// Cuts a transfer between scattered memory here and scattered memory there into what single descriptors can
// do.
class Parts {
 public:
  Parts(const Buffer& local, std::span<const Segment> remote, std::uint64_t limit)
      : local_(local), remote_(remote), limit_(limit) {}

  // False when one side is used up.
  bool next(std::uint64_t& local, Segment& remote) {
    while (piece_ < local_.count && local_.pieces[piece_].iov_len == local_done_) {
      ++piece_;
      local_done_ = 0;
    }
    while (segment_ < remote_.size() && remote_[segment_].length == remote_done_) {
      ++segment_;
      remote_done_ = 0;
    }
    if (piece_ == local_.count || segment_ == remote_.size()) return false;
    const std::uint64_t length = std::min({limit_, std::uint64_t{local_.pieces[piece_].iov_len} - local_done_,
                                           remote_[segment_].length - remote_done_});
    local = reinterpret_cast<std::uint64_t>(local_.pieces[piece_].iov_base) + local_done_;
    remote = {remote_[segment_].address + remote_done_, length};
    local_done_ += length;
    remote_done_ += length;
    return true;
  }
  // To which the last part belongs.
  [[nodiscard]] std::size_t segment() const { return segment_; }

 private:
  const Buffer& local_;
  std::span<const Segment> remote_;
  std::uint64_t limit_;
  std::uint32_t piece_ = 0;
  std::size_t segment_ = 0;
  std::uint64_t local_done_ = 0;
  std::uint64_t remote_done_ = 0;
};

std::uint64_t completion_flags(const Transfer& transfer) {
  switch (transfer.kind) {
    case Transfer::Kind::write:
      return FI_RMA | FI_WRITE;
    case Transfer::Kind::read:
      return FI_RMA | FI_READ;
    case Transfer::Kind::message:
      break;
  }
  return FI_SEND | (transfer.tagged ? FI_TAGGED : FI_MSG);
}

MessageHeader header_of(const Endpoint& endpoint, const SendCall& call, bool eager) {
  MessageHeader header;
  if (eager) {
    header.kind = call.tagged ? MessageKind::eager_tagged : MessageKind::eager_plain;
  } else {
    header.kind = call.tagged ? MessageKind::ready_tagged : MessageKind::ready_plain;
  }
  header.has_data = call.has_data ? 1 : 0;
  header.source_endpoint = endpoint.number();
  header.target_endpoint = static_cast<std::uint16_t>(call.to->endpoint);
  header.data = call.data;
  header.tag = call.tag;
  return header;
}

}  // namespace

void gather(std::byte* to, const Buffer& from) {
  for (std::uint32_t i = 0; i < from.count; ++i) {
    const iovec& piece = from.pieces[i];
    if (piece.iov_len > 0) std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
}

Sender::Sender(Port& port, ipc::Client& client)
    : port_(port), client_(client), eager_limit_bytes_(client.costs().eager_limit_bytes) {
  constexpr auto header_bytes = static_cast<std::int64_t>(sizeof(MessageHeader));
  const std::int64_t most = client.header().max_message_bytes;
  part_limit_bytes_ = most > 0 ? static_cast<std::uint64_t>(most) : std::numeric_limits<std::uint64_t>::max();
  eager_limit_bytes_ = std::min<std::int64_t>(eager_limit_bytes_, ipc::slot_bytes);
  const std::int64_t largest_send = client.header().max_send_bytes;
  if (largest_send > 0) eager_limit_bytes_ = std::min(eager_limit_bytes_, largest_send - header_bytes);
}

void Sender::send(Endpoint& endpoint, const SendCall& call) {
  const bool small = static_cast<std::int64_t>(call.buffer.length) <= eager_limit_bytes_;
  if (!small || !send_eager(endpoint, call)) {
    start_rendezvous(endpoint, call);
    return;
  }
  if (Recorder* recorder = port_.recorder())
    recorder->ended(recorder->sent(call.to->rank, call.tagged, call.tag, call.buffer.length));
  CompletionEntry entry;
  entry.context = call.context;
  entry.flags = FI_SEND | (call.tagged ? FI_TAGGED : FI_MSG);
  endpoint.transmitted(entry, call.reports);
}

// One message with the payload in it; the program's buffer is free at once. False: the shared mapping has no
// room.
bool Sender::send_eager(Endpoint& endpoint, const SendCall& call) {
  const std::size_t length = call.buffer.length;
  const std::size_t total = sizeof(MessageHeader) + length;
  ipc::Request request;
  std::byte* payload = request.inline_data + sizeof(MessageHeader);
  request.inline_length = static_cast<std::uint32_t>(total);
  if (total > ipc::inline_bytes) {
    request.slot = client_.take_slot();
    if (request.slot == ipc::no_slot) return false;
    request.slot_length = static_cast<std::uint32_t>(length);
    request.inline_length = sizeof(MessageHeader);
    payload = client_.slot_data(client_.rank(), request.slot);
  }
  request.target = call.to->rank;
  request.verb = ipc::RequestVerb::send;
  request.bytes = static_cast<std::int64_t>(total);
  MessageHeader header = header_of(endpoint, call, true);
  header.sequence = port_.next_sequence(call.to->rank);
  std::memcpy(request.inline_data, &header, sizeof(header));
  gather(payload, call.buffer);
  client_.charge(client_.costs().send_ps);
  if (request.bytes <= client_.header().max_pio_bytes) {
    request.flags = ipc::from_cpu;  // the CPU's writes to the card are the copy
  } else {
    client_.charge_copy(static_cast<std::int64_t>(length));
  }
  client_.post(request);
  client_.charge_further_packets(request.target, request.bytes);
  return true;
}

Transfer& Sender::begin(Endpoint& endpoint, Transfer::Kind kind, const Buffer& buffer, const EndpointName& to,
                        bool inject) {
  Transfer* transfer = transfers_.take();
  transfer->kind = kind;
  transfer->endpoint = &endpoint;
  transfer->target = to.rank;
  transfer->target_endpoint = static_cast<std::uint16_t>(to.endpoint);
  transfer->buffer = buffer;
  if (inject) {
    transfer->copy = std::make_unique<std::byte[]>(buffer.length);
    gather(transfer->copy.get(), buffer);
    transfer->buffer = make_buffer(transfer->copy.get(), buffer.length);
  }
  in_order_.push_back(transfer);
  ++unfinished_;
  if (kind != Transfer::Kind::message) ++accesses_;
  return *transfer;
}

void Sender::start_rendezvous(Endpoint& endpoint, const SendCall& call) {
  Transfer& transfer = begin(endpoint, Transfer::Kind::message, call.buffer, *call.to, call.inject);
  transfer.tagged = call.tagged;
  transfer.reports = call.reports;
  transfer.context = call.context;
  if (Recorder* recorder = port_.recorder())
    transfer.recorded = recorder->sent(call.to->rank, call.tagged, call.tag, call.buffer.length);
  ReadyBody body;
  body.length = call.buffer.length;
  body.transfer = transfer.id;
  client_.charge(client_.costs().rendezvous_ps);
  port_.post_control(call.to->rank, header_of(endpoint, call, false),
                     std::as_bytes(std::span<const ReadyBody, 1>(&body, 1)));
}

void Sender::cleared(const Message& message) {
  const ClearBody body = decode_clear({message.payload, message.payload_bytes});
  Transfer* transfer = transfers_.find(body.transfer);
  if (transfer == nullptr || transfer->kind != Transfer::Kind::message || transfer->cleared ||
      transfer->target != message.source) {
    throw MalformedMessage("a clear to send for nothing that was announced");
  }
  transfer->cleared = true;
  const ipc::SoftwareCosts& costs = client_.costs();
  client_.charge_receive(message.mailbox_packets);
  client_.charge(costs.rendezvous_ps);
  port_.charge_later(costs.after_receive_ps);
  const PutNotice notice{PutNotice::Kind::rendezvous, transfer->target_endpoint, body.receive};
  Parts parts(transfer->buffer, {body.segments.data(), body.segment_count}, part_limit_bytes_);
  std::uint64_t local = 0;
  Segment remote;
  while (parts.next(local, remote)) {
    post_part(*transfer, ipc::RequestVerb::put, local, remote,
              {.flags = ipc::want_local | ipc::notify_target, .key = 0, .immediate = notice.encode()});
  }
  if (transfer->pending == 0) finish(*transfer);
}

void Sender::write(Endpoint& endpoint, const RemoteCall& call) {
  Transfer& transfer = begin(endpoint, Transfer::Kind::write, call.buffer, *call.to, call.inject);
  transfer.reports = call.reports;
  transfer.context = call.context;
  transfer.delivered = call.delivered;
  transfer.data = call.data;
  if (Recorder* recorder = port_.recorder())
    transfer.recorded = recorder->accessed(ipc::RecordKind::put, call.to->rank, call.buffer.length);
  transfer.has_data = call.has_data;
  std::uint64_t local = 0;
  Segment remote;
  Parts parts(transfer.buffer, call.remote, part_limit_bytes_);
  const auto key = [&] { return call.keys[parts.segment()]; };
  if (!call.has_data && !endpoint.tells_targets()) {
    const std::uint8_t flags = (call.delivered ? ipc::want_remote : ipc::want_local) | ipc::by_key;
    while (parts.next(local, remote))
      post_part(transfer, ipc::RequestVerb::put, local, remote, {.flags = flags, .key = key()});
    if (transfer.pending == 0) finish(transfer);
    return;
  }
  // The last part tells the target, and may not overtake the others.
  bool any = parts.next(transfer.last_local, transfer.last_remote);
  transfer.last_key = call.keys[0];
  if (any) transfer.last_key = key();
  if (!any) transfer.last_remote = {call.remote.empty() ? 0 : call.remote[0].address, 0};
  while (any && parts.next(local, remote)) {
    post_part(transfer, ipc::RequestVerb::put, transfer.last_local, transfer.last_remote,
              {.flags = ipc::want_remote | ipc::by_key, .key = transfer.last_key});
    transfer.last_local = local;
    transfer.last_remote = remote;
    transfer.last_key = key();
  }
  transfer.last_waits = true;
  if (transfer.pending == 0) finish(transfer);
}

void Sender::read(Endpoint& endpoint, const RemoteCall& call) {
  Transfer& transfer = begin(endpoint, Transfer::Kind::read, call.buffer, *call.to, false);
  transfer.reports = call.reports;
  transfer.context = call.context;
  if (Recorder* recorder = port_.recorder())
    transfer.recorded = recorder->accessed(ipc::RecordKind::got, call.to->rank, call.buffer.length);
  std::uint64_t local = 0;
  Segment remote;
  Parts parts(transfer.buffer, call.remote, part_limit_bytes_);
  transfer.last_key = call.keys[0];
  while (parts.next(local, remote)) {
    transfer.last_key = call.keys[parts.segment()];
    post_part(transfer, ipc::RequestVerb::get, local, remote,
              {.flags = ipc::by_key, .key = transfer.last_key});
  }
  if (transfer.pending == 0) finish(transfer);
}

void Sender::post_part(Transfer& transfer, ipc::RequestVerb verb, std::uint64_t local, const Segment& remote,
                       const PartOptions& options) {
  ipc::Request request;
  request.target = transfer.target;
  request.verb = verb;
  request.flags = options.flags;
  request.endpoint = transfer.target_endpoint;
  request.key = options.key;
  request.bytes = static_cast<std::int64_t>(remote.length);
  request.local_address = local;
  request.remote_address = remote.address;
  request.immediate = options.immediate;
  client_.charge(client_.costs().send_ps);
  parts_.insert(client_.post(request), transfer.id);
  ++transfer.pending;
}

void Sender::reported(const ipc::Event& event) {
  std::uint32_t id = 0;
  Transfer* transfer = parts_.take(event.message, id) ? transfers_.find(id) : nullptr;
  if (transfer == nullptr) throw MalformedMessage("a completion of nothing that was posted");
  client_.charge(client_.costs().completion_ps);
  if (transfer->fault == ipc::AccessFault::none) transfer->fault = event.fault;
  if (--transfer->pending == 0) finish(*transfer);
}

void Sender::finish(Transfer& transfer) {
  if (transfer.last_waits && transfer.fault == ipc::AccessFault::none) {
    transfer.last_waits = false;
    const PutNotice::Kind kind =
        transfer.has_data ? PutNotice::Kind::remote_data : PutNotice::Kind::remote_write;
    const PutNotice notice{kind, transfer.target_endpoint, transfer.has_data ? transfer.data : 0};
    const int want = transfer.delivered ? ipc::want_remote : ipc::want_local;
    // A put of nothing touches no memory.
    const int by_key = transfer.last_remote.length > 0 ? ipc::by_key : 0;
    post_part(transfer, ipc::RequestVerb::put, transfer.last_local, transfer.last_remote,
              {.flags = static_cast<std::uint8_t>(want | by_key | ipc::notify_target),
               .key = transfer.last_key,
               .immediate = notice.encode()});
    return;
  }
  if (transfer.kind == Transfer::Kind::read && transfer.fault == ipc::AccessFault::none)
    tell_of_read(transfer);
  if (transfer.recorded != 0) port_.recorder()->ended(transfer.recorded);
  if (transfer.endpoint != nullptr) {
    CompletionEntry entry;
    entry.context = transfer.context;
    entry.flags = completion_flags(transfer);
    entry.fail(transfer.fault);
    transfer.endpoint->transmitted(entry, transfer.reports);
  }
  in_order_.remove(&transfer);
  --unfinished_;
  if (transfer.kind != Transfer::Kind::message) --accesses_;
  transfers_.give_back(&transfer);
}

void Sender::tell_of_read(const Transfer& transfer) {
  if (transfer.endpoint == nullptr || !transfer.endpoint->tells_targets()) return;
  MessageHeader header;
  header.kind = MessageKind::read_notice;
  header.source_endpoint = transfer.endpoint->number();
  header.target_endpoint = transfer.target_endpoint;
  header.tag = transfer.last_key;
  port_.post_control(transfer.target, header, {});
}

void Sender::forget(Endpoint& endpoint) {
  for (Transfer* transfer = in_order_.front(); transfer != nullptr; transfer = in_order_.next(transfer)) {
    if (transfer->endpoint == &endpoint) transfer->endpoint = nullptr;
  }
}

}  // namespace apenet::libfabric
