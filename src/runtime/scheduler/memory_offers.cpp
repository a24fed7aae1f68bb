#include "runtime/scheduler/memory_offers.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string>

#include "runtime/scheduler/rank_error.hpp"

namespace apenet {
namespace {

using message::MessageHeader;
using message::MessageKind;

// The message engine of these libraries has a rendezvous (message/engine_send.hpp).
bool has_rendezvous(ipc::Interface interface) {
  return interface == ipc::Interface::libfabric || interface == ipc::Interface::apelib;
}

std::uint64_t offer_key(std::uint32_t receiver, ipc::Interface interface, std::uint32_t number) {
  const std::uint64_t is_apelib = interface == ipc::Interface::apelib ? 1 : 0;
  return std::uint64_t{receiver} << 33U | is_apelib << 32U | number;
}

bool tells_of_part(const ipc::Request& request) {
  return request.immediate >> 56U == static_cast<std::uint64_t>(message::PutNoticeKind::rendezvous);
}

}  // namespace

// What is no valid `clear` is no message for the sender's library either.
void MemoryOffers::note(std::uint32_t rank, const ipc::Request& request) {
  constexpr auto clear_kind = static_cast<std::byte>(MessageKind::clear);
  static_assert(offsetof(MessageHeader, kind) == 0);
  if (request.inline_data[0] != clear_kind || request.inline_length < sizeof(MessageHeader) ||
      !has_rendezvous(request.interface))
    return;
  message::ClearBody body;
  try {
    body = message::decode_clear(
        std::span(request.inline_data, request.inline_length).subspan(sizeof(MessageHeader)));
  } catch (const message::MalformedMessage&) {
    return;
  }
  MemoryOffer offer{.source = request.target,
                    .segment_count = body.segment_count,
                    .gpu_segments = body.gpu_segments,
                    .segments = body.segments};
  for (std::uint32_t i = 0; i < body.segment_count; ++i)
    offer.bytes_left +=
        std::min(body.segments[i].length, std::numeric_limits<std::uint64_t>::max() - offer.bytes_left);
  if (offer.bytes_left == 0) return;
  if (count_of_[rank] == most_of_a_rank)
    throw RankError(rank, "has exceeded the limit of 2^20 long messages that a rank receives at a time");
  ++count_of_[rank];
  offers_.emplace(offer_key(rank, request.interface, body.receive), offer);
}

bool MemoryOffers::holds(const MemoryOffer& offer, std::uint32_t source, const ipc::Request& request) {
  if (offer.source != source) return false;
  const auto bytes = static_cast<std::uint64_t>(request.bytes);
  const bool to_gpu = (request.flags & ipc::remote_gpu) != 0;
  for (std::uint32_t i = 0; i < offer.segment_count; ++i) {
    const message::Segment& segment = offer.segments[i];
    const bool in_gpu = (offer.gpu_segments >> i & 1U) != 0;
    const std::uint64_t begin = request.remote_address - segment.address;  // wraps around if it lies before
    if (in_gpu == to_gpu && begin <= segment.length && bytes <= segment.length - begin)
      return bytes <= offer.bytes_left;
  }
  return false;
}

void MemoryOffers::check(std::uint32_t rank, const ipc::Request& request) {
  if (!has_rendezvous(request.interface)) return;
  const bool is_part = tells_of_part(request);
  const bool has_key = (request.flags & ipc::by_key) != 0;
  const bool is_empty = request.bytes == 0;
  if (!is_part && (has_key || is_empty)) return;
  if (is_part && !has_key && !is_empty) {
    const auto number = static_cast<std::uint32_t>(request.immediate);
    auto [at, last] = offers_.equal_range(offer_key(request.target, request.interface, number));
    at = std::find_if(at, last, [&](const auto& entry) { return holds(entry.second, rank, request); });
    if (at != last) {
      at->second.bytes_left -= static_cast<std::uint64_t>(request.bytes);
      if (at->second.bytes_left > 0) return;
      offers_.erase(at);
      --count_of_[request.target];
      return;
    }
  }
  throw RankError(
      rank, "posted a put of " + std::to_string(request.bytes) + " bytes " +
                (has_key || is_empty ? "as a part of a message to rank "
                                     : "without a key to memory that has not been offered to it by rank ") +
                std::to_string(request.target));
}

}  // namespace apenet
