// Engine's half that puts data on the card. The file that instantiates an Engine includes this one.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernel/rate.hpp"
#include "message/engine.hpp"

namespace apenet::message {

// Cuts a transfer between scattered memory here and scattered memory there into what single descriptors can
// do.
class Parts {
 public:
  // `remote_gpu`: one bit a remote segment, as Buffer::gpu_pieces.
  Parts(const Buffer& local, std::span<const Segment> remote, std::uint32_t remote_gpu, std::uint64_t limit)
      : local_(local), remote_(remote), remote_gpu_(remote_gpu), limit_(limit) {}

  // False when one side is used up.
  bool next(std::uint64_t& local, Segment& remote) {
    while (piece_ < local_.count && local_.pieces[piece_].length == local_done_) {
      ++piece_;
      local_done_ = 0;
    }
    while (segment_ < remote_.size() && remote_[segment_].length == remote_done_) {
      ++segment_;
      remote_done_ = 0;
    }
    if (piece_ == local_.count || segment_ == remote_.size()) return false;
    const std::uint64_t length = std::min(
        {limit_, local_.pieces[piece_].length - local_done_, remote_[segment_].length - remote_done_});
    local = local_.pieces[piece_].address + local_done_;
    remote = {remote_[segment_].address + remote_done_, length};
    local_done_ += length;
    remote_done_ += length;
    return true;
  }
  // The remote segment to which the last part belongs.
  [[nodiscard]] std::size_t segment() const { return segment_; }
  // RequestFlag: where a card that reaches GPUs finds the last part.
  [[nodiscard]] std::uint8_t memory() const {
    const bool to_gpu = (remote_gpu_ >> segment_ & 1) != 0;
    return static_cast<std::uint8_t>((local_.is_in_gpu(piece_) ? local_gpu : 0) | (to_gpu ? remote_gpu : 0));
  }

 private:
  const Buffer& local_;
  std::span<const Segment> remote_;
  std::uint32_t remote_gpu_;
  std::uint64_t limit_;
  std::uint32_t piece_ = 0;
  std::size_t segment_ = 0;
  std::uint64_t local_done_ = 0;
  std::uint64_t remote_done_ = 0;
};

inline MessageHeader header_of(const Inbox& from, const SendCall& call, bool eager) {
  MessageHeader header;
  if (eager) {
    header.kind = call.tagged ? MessageKind::eager_tagged : MessageKind::eager_plain;
  } else {
    header.kind = call.tagged ? MessageKind::ready_tagged : MessageKind::ready_plain;
  }
  header.has_data = call.has_data ? 1 : 0;
  header.source_endpoint = from.number();
  header.target_endpoint = call.target_endpoint;
  header.data = call.data;
  header.tag = call.tag;
  return header;
}

template <typename P>
Engine<P>::Engine(P& transport, Stores& stores, std::uint8_t rail)
    : transport_(transport), stores_(stores), rail_(rail) {
  const CardLimits& card = transport.card(rail);
  eager_limit_bytes_ = std::min(transport.costs(rail).eager_limit_bytes, most_eager_bytes);
  const auto longest_send = static_cast<std::uint64_t>(card.max_send_bytes);
  piece_limit_bytes_ = slot_bytes;
  if (longest_send > 0)
    piece_limit_bytes_ = std::min<std::uint64_t>(piece_limit_bytes_, longest_send - sizeof(MessageHeader));
  part_limit_bytes_ = card.max_message_bytes > 0 ? static_cast<std::uint64_t>(card.max_message_bytes)
                                                 : std::numeric_limits<std::uint64_t>::max();
}

template <typename P>
bool Engine<P>::send(Inbox& from, const SendCall& call) {
  transport_.works_for(call.owner);
  const bool small = static_cast<std::int64_t>(call.buffer.length) <= eager_limit_bytes_;
  // A rendezvous saves the receiver's copy to its GPU, but needs this process again: not for an inject.
  const bool stays_in_gpu = call.buffer.gpu_bytes() > 0 && card_reaches_gpus(call.target) && !call.inject;
  if (call.direct_bytes > 0 && call.buffer.length <= call.direct_bytes && send_direct(from, call))
    return false;
  if (small && !stays_in_gpu && send_eager(from, call)) return true;
  start_rendezvous(from, call);
  return false;
}

// One request with the payload in it, or several if the payload is longer than one can carry. False: there is
// no room for it.
template <typename P>
bool Engine<P>::send_eager(Inbox& from, const SendCall& call) {
  const std::uint64_t length = call.buffer.length;
  const std::uint64_t pieces = length == 0 ? 1 : (length + piece_limit_bytes_ - 1) / piece_limit_bytes_;
  if constexpr (P::moves_bytes) {
    const bool fits_request = sizeof(MessageHeader) + length <= inline_bytes;
    if (!fits_request && !transport_.frees_slots(static_cast<std::uint32_t>(pieces))) return false;
  }
  charge_staging(call.buffer, call.target);
  MessageHeader header = header_of(from, call, true);
  header.pieces_to_come = static_cast<std::uint16_t>(pieces - 1);
  post_eager(header, call, part_of(call.buffer, 0, std::min(length, piece_limit_bytes_)));
  while (header.pieces_to_come > 0) {
    --header.pieces_to_come;
    header.kind = MessageKind::piece;
    const std::uint64_t done = (pieces - 1 - header.pieces_to_come) * piece_limit_bytes_;
    post_eager(header, call, part_of(call.buffer, done, std::min(length - done, piece_limit_bytes_)));
  }
  return true;
}

// One request whose payload the card reads from the program's memory, and reports when it has. False: the CPU
// has to write or copy the payload, or there is no room for it.
template <typename P>
bool Engine<P>::send_direct(Inbox& from, const SendCall& call) {
  const std::uint64_t length = call.buffer.length;
  const auto bytes = static_cast<std::int64_t>(sizeof(MessageHeader) + length);
  if (length > piece_limit_bytes_ || bytes <= transport_.card(rail_).max_pio_bytes) return false;
  if (call.buffer.gpu_bytes() > 0 || goes_through_memory(call.target)) return false;
  if constexpr (P::moves_bytes) {
    if (sizeof(MessageHeader) + length > inline_bytes && !transport_.frees_slots(1)) return false;
  }
  Transfer& transfer = begin(from, TransferKind::message, call.buffer, false, call.owner);
  transfer.target = call.target;
  transfer.tagged = call.tagged;
  transfer.tag = call.tag;
  transfer.cleared = true;
  Request request = eager_request(header_of(from, call, true), call.target, call.buffer);
  request.flags = want_local;
  request.rail = rail_;
  transport_.charge(transport_.costs(rail_).send);
  charge_doorbell(call.target);
  parts_.insert(transport_.post(request), transfer.id);
  ++transfer.pending;
  return true;
}

// Requires a free slot, unless the request can hold the payload.
template <typename P>
void Engine<P>::post_eager(MessageHeader header, const SendCall& call, const Buffer& part) {
  Request request = eager_request(header, call.target, part);
  const SoftwareCosts& costs = transport_.costs(rail_);
  // A receive ring's place is given back by a request.
  request.no_reply = call.no_reply && transport_.card(rail_).needs_credit == 0 ? 1 : 0;
  transport_.charge(costs.send);
  if (costs.eager_completion > Time::zero() && !goes_through_memory(call.target)) {
    request.flags = want_local;
    request.immediate = copied_message;
  }
  // What the CPU writes to the card itself needs no other copy.
  if (request.bytes > transport_.card(rail_).max_pio_bytes) charge_copy(part.length - part.gpu_bytes());
  if (part.gpu_bytes() > 0 && card_reaches_gpus(call.target)) request.flags |= local_gpu;
  post_send(request);
}

template <typename P>
Request Engine<P>::eager_request(MessageHeader header, std::uint32_t target, const Buffer& buffer) {
  const std::uint64_t length = buffer.length;
  Request request;
  request.target = target;
  request.bytes = static_cast<std::int64_t>(sizeof(MessageHeader) + length);
  request.inline_length = sizeof(MessageHeader);
  if constexpr (P::moves_bytes) {
    std::byte* payload = request.inline_data + sizeof(MessageHeader);
    if (sizeof(MessageHeader) + length > inline_bytes) {
      payload = transport_.take_slot(request, length);
    } else {
      request.inline_length += static_cast<std::uint32_t>(length);
    }
    gather(payload, buffer);
  }
  header.sequence = peers_[peers_.number_of(target)].next_out++;
  std::memcpy(request.inline_data, &header, sizeof(header));
  return request;
}

// What the CPU has yet to write of a send, when everything before it is charged, packet by packet,
// where the library cuts messages. A copy in memory has no packets.
template <typename P>
void Engine<P>::post_send(Request& request) {
  const CardLimits& card = transport_.card(rail_);
  const bool is_written = request.bytes <= card.max_pio_bytes && (request.flags & local_gpu) == 0;
  if (is_written) request.flags |= from_cpu;
  request.rail = rail_;
  if (!is_written) charge_doorbell(request.target);
  transport_.post(request);
  const std::int64_t packet = card.send_packet_bytes;
  if (!is_written || packet == 0 || request.bytes <= packet || goes_through_memory(request.target)) return;
  transport_.charge(transport_.costs(rail_).send_packet * ((request.bytes - 1) / packet));
}

template <typename P>
bool Engine<P>::goes_through_memory(std::uint32_t peer) const {
  return message::goes_through_memory(transport_.card(rail_), transport_.is_same_node(peer));
}

template <typename P>
void Engine<P>::charge_doorbell(std::uint32_t target) {
  if (!goes_through_memory(target)) transport_.charge(transport_.costs(rail_).doorbell);
}

template <typename P>
void Engine<P>::charge_copy(std::uint64_t bytes) {
  const std::int64_t rate = transport_.costs(rail_).copy_bytes_per_second;
  if (bytes > 0 && rate > 0)
    transport_.charge(Time::from_ps(scale_up(static_cast<std::int64_t>(bytes), ps_per_second, rate)));
}

// A copy between the memories of the host and of the GPU, for which the CPU waits.
template <typename P>
void Engine<P>::charge_gpu_copy(std::uint64_t bytes) {
  if (bytes > 0) transport_.charge(transport_.costs(rail_).gpu_copy(static_cast<std::int64_t>(bytes)));
}

template <typename P>
bool Engine<P>::card_reaches_gpus(std::uint32_t peer) const {
  return transport_.card(rail_).reaches_gpus != 0 && !goes_through_memory(peer);
}

// In a copy in memory, and with a card that does not reach GPUs, data goes through a buffer of the host.
template <typename P>
void Engine<P>::charge_staging(const Buffer& buffer, std::uint32_t peer) {
  if (!card_reaches_gpus(peer)) charge_gpu_copy(buffer.gpu_bytes());
}

template <typename P>
Transfer& Engine<P>::begin(Inbox& from, TransferKind kind, const Buffer& buffer, bool inject,
                           const Owner& owner) {
  Transfer& transfer = *stores_.transfers.take();
  transfer.kind = kind;
  transfer.inbox = &from;
  transfer.owner = owner;
  transfer.buffer = buffer;
  if constexpr (P::moves_bytes) {
    if (inject) {
      transfer.copy = std::make_unique<std::byte[]>(buffer.length);
      gather(transfer.copy.get(), buffer);
      // The copy stands for the memory that it was taken from, so the card still reads that of the GPU.
      transfer.buffer = one_piece(address_of(transfer.copy.get()), buffer.length);
      transfer.buffer.gpu_pieces = buffer.gpu_bytes() > 0 ? 1 : 0;
    }
  }
  transfers_.push_back(&transfer);
  ++unfinished_;
  if (kind != TransferKind::message) ++accesses_;
  return transfer;
}

template <typename P>
void Engine<P>::start_rendezvous(Inbox& from, const SendCall& call) {
  Transfer& transfer = begin(from, TransferKind::message, call.buffer, call.inject, call.owner);
  transfer.target = call.target;
  transfer.target_endpoint = call.target_endpoint;
  transfer.tagged = call.tagged;
  transfer.tag = call.tag;
  ReadyBody body;
  body.length = call.buffer.length;
  body.transfer = transfer.id;
  transport_.charge(transport_.costs(rail_).rendezvous);
  post_control(call.target, header_of(from, call, false),
               std::as_bytes(std::span<const ReadyBody, 1>(&body, 1)));
}

template <typename P>
void Engine<P>::cleared(const Message& message) {
  const ClearBody body = decode_clear({message.payload, message.payload_bytes});
  Transfer* transfer = stores_.transfers.find(body.transfer);
  if (transfer == nullptr || transfer->kind != TransferKind::message || transfer->cleared ||
      transfer->target != message.source) {
    throw MalformedMessage("a clear to send for nothing that was announced");
  }
  transfer->cleared = true;
  transport_.works_for(transfer->owner);
  charge_receive(message);
  transport_.charge(transport_.costs(rail_).rendezvous);
  const PutNotice notice{PutNoticeKind::rendezvous, transfer->target_endpoint, body.receive};
  if (body.segment_count > 0) charge_staging(transfer->buffer, transfer->target);
  Parts parts(transfer->buffer, {body.segments.data(), body.segment_count}, body.gpu_segments,
              part_limit_bytes_);
  std::uint64_t local = 0;
  Segment remote;
  while (parts.next(local, remote)) {
    post_part(*transfer, RequestVerb::put, local, remote,
              {.flags = static_cast<std::uint8_t>(want_local | notify_target | parts.memory()),
               .key = 0,
               .immediate = notice.encode()});
  }
  if (transfer->pending == 0) finish(*transfer);
}

template <typename P>
Transfer& Engine<P>::begin_access(Inbox& from, TransferKind kind, const AccessCall& call) {
  transport_.works_for(call.owner);
  Transfer& transfer = begin(from, kind, call.buffer, call.inject, call.owner);
  transfer.target = call.target;
  transfer.target_endpoint = call.target_endpoint;
  transfer.delivered = call.delivered;
  transfer.notifies = call.notifies;
  transfer.has_data = call.has_data;
  transfer.data = call.data;
  transfer.last_key = call.keys[0];
  return transfer;
}

template <typename P>
void Engine<P>::write(Inbox& from, const AccessCall& call) {
  Transfer& transfer = begin_access(from, TransferKind::write, call);
  std::uint64_t local = 0;
  Segment remote;
  charge_staging(transfer.buffer, transfer.target);
  Parts parts(transfer.buffer, call.remote, 0, part_limit_bytes_);
  const auto key = [&] { return call.keys[parts.segment()]; };
  if (!call.has_data && !call.notifies) {
    const std::uint8_t flags = (call.delivered ? want_remote : want_local) | by_key;
    while (parts.next(local, remote))
      post_part(transfer, RequestVerb::put, local, remote,
                {.flags = static_cast<std::uint8_t>(flags | parts.memory()), .key = key()});
    if (transfer.pending == 0) finish(transfer);
    return;
  }
  // The last part tells the target, and may not overtake the others.
  bool any = parts.next(transfer.last_local, transfer.last_remote);
  if (any) {
    transfer.last_key = key();
    transfer.last_memory = parts.memory();
  }
  if (!any) transfer.last_remote = {call.remote.empty() ? 0 : call.remote[0].address, 0};
  while (any && parts.next(local, remote)) {
    post_part(transfer, RequestVerb::put, transfer.last_local, transfer.last_remote,
              {.flags = static_cast<std::uint8_t>(want_remote | by_key | transfer.last_memory),
               .key = transfer.last_key});
    transfer.last_local = local;
    transfer.last_remote = remote;
    transfer.last_key = key();
    transfer.last_memory = parts.memory();
  }
  transfer.last_waits = true;
  if (transfer.pending == 0) finish(transfer);
}

template <typename P>
void Engine<P>::read(Inbox& from, const AccessCall& call) {
  Transfer& transfer = begin_access(from, TransferKind::read, call);
  std::uint64_t local = 0;
  Segment remote;
  Parts parts(transfer.buffer, call.remote, 0, part_limit_bytes_);
  while (parts.next(local, remote)) {
    transfer.last_key = call.keys[parts.segment()];
    post_part(transfer, RequestVerb::get, local, remote,
              {.flags = static_cast<std::uint8_t>(by_key | parts.memory()), .key = transfer.last_key});
  }
  if (transfer.pending == 0) finish(transfer);
}

template <typename P>
void Engine<P>::post_part(Transfer& transfer, RequestVerb verb, std::uint64_t local, const Segment& remote,
                          const PartOptions& options) {
  Request request;
  request.target = transfer.target;
  request.verb = verb;
  request.flags = options.flags;
  if (!card_reaches_gpus(transfer.target)) request.flags &= static_cast<std::uint8_t>(~local_gpu);
  request.endpoint = transfer.target_endpoint;
  request.key = options.key;
  request.bytes = static_cast<std::int64_t>(remote.length);
  request.local_address = local;
  request.remote_address = remote.address;
  request.immediate = options.immediate;
  transport_.charge(transport_.costs(rail_).send);
  charge_doorbell(transfer.target);
  request.rail = rail_;
  parts_.insert(transport_.post(request), transfer.id);
  ++transfer.pending;
}

template <typename P>
void Engine<P>::reported(const Event& event) {
  if (event.kind == EventKind::sent && event.immediate == copied_message) {
    transport_.works_for({});
    transport_.charge(transport_.costs(rail_).eager_completion);
    return;
  }
  std::uint32_t id = 0;
  Transfer* transfer = parts_.take(event.message, id) ? stores_.transfers.find(id) : nullptr;
  if (transfer == nullptr) throw MalformedMessage("a completion of nothing that was posted");
  transport_.works_for(transfer->owner);
  transport_.charge(transport_.costs(rail_).completion);
  if (transfer->fault == AccessFault::none) transfer->fault = event.fault;
  if (--transfer->pending == 0) finish(*transfer);
}

template <typename P>
void Engine<P>::post_last(Transfer& transfer) {
  transfer.last_waits = false;
  const PutNoticeKind kind = transfer.has_data ? PutNoticeKind::remote_data : PutNoticeKind::remote_write;
  const PutNotice notice{kind, transfer.target_endpoint, transfer.has_data ? transfer.data : 0};
  const int want = transfer.delivered ? want_remote : want_local;
  // A put of nothing touches no memory.
  const int key_flag = transfer.last_remote.length > 0 ? by_key : 0;
  post_part(transfer, RequestVerb::put, transfer.last_local, transfer.last_remote,
            {.flags = static_cast<std::uint8_t>(want | key_flag | notify_target | transfer.last_memory),
             .key = transfer.last_key,
             .immediate = notice.encode()});
}

template <typename P>
void Engine<P>::finish(Transfer& transfer) {
  if (transfer.last_waits && transfer.fault == AccessFault::none) {
    post_last(transfer);
    return;
  }
  if (transfer.kind == TransferKind::read) charge_staging(transfer.buffer, transfer.target);
  const bool tells_of_read = transfer.kind == TransferKind::read && transfer.notifies;
  if (tells_of_read && transfer.fault == AccessFault::none && transfer.inbox != nullptr) {
    MessageHeader header;
    header.kind = MessageKind::read_notice;
    header.source_endpoint = transfer.inbox->number();
    header.target_endpoint = transfer.target_endpoint;
    header.tag = transfer.last_key;
    post_control(transfer.target, header, {});
  }
  transport_.ended(transfer);
  transfers_.remove(&transfer);
  --unfinished_;
  if (transfer.kind != TransferKind::message) --accesses_;
  stores_.transfers.give_back(&transfer);
}

}  // namespace apenet::message
