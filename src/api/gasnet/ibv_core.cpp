#include "api/gasnet/ibv_core.hpp"

#include <utility>

namespace apenet::gasnet {
namespace {

constexpr std::uint64_t segment_key = 1;

}  // namespace

IbvCore::IbvCore(ipc::Client& client, std::uint8_t rail)
    : OneSidedCore(client.size(), {.operations_to_peer = most_under_way_to_peer,
                                   .operations = most_under_way,
                                   .copied_bytes = most_copied_bytes}),
      card_(client, ipc::Interface::gasnet, *this, rail) {}

Core::Traits IbvCore::traits() const {
  return {.packet_bytes = largest_request_bytes(LongPayload::before_message),
          .credits = credits_of_peer,
          .slack = credits_kept,
          .long_payload = LongPayload::before_message};
}

void IbvCore::post(ipc::Request& request) {
  card_.charge(card_.costs().send);
  card_.post(request);
}

void IbvCore::send(std::uint32_t target, std::span<const std::byte> packet, bool /*is_first*/) {
  ipc::Request request;
  request.verb = ipc::RequestVerb::send;
  request.target = target;
  request.bytes = static_cast<std::int64_t>(packet.size());
  const bool by_cpu = request.bytes <= card_.limits().max_pio_bytes;
  request.flags = static_cast<std::uint8_t>(ipc::want_local | (by_cpu ? ipc::from_cpu : 0));
  request.immediate = begin_message(target);
  card_.set_payload(request, packet);
  post(request);
}

bool IbvCore::poll() {
  while (!has_packet() && card_.poll()) continue;
  return has_packet();
}

// The buffer is posted again once its message is out.
void IbvCore::take(std::span<std::byte> to) {
  copy_received(to);
  card_.charge(card_.costs().receive);
  card_.defer_cost(card_.costs().after_receive);
}

std::optional<std::uint64_t> IbvCore::publish(std::span<std::byte> segment) {
  card_.charge(card_.costs().publish);
  const bool is_open = card_.open_region(
      segment_key, segment, reinterpret_cast<std::uint64_t>(segment.data()), ipc::may_read | ipc::may_write);
  return is_open ? std::optional(segment_key) : std::nullopt;
}

// What one request carries beside the memory that it names is bounded.
bool IbvCore::is_inline(std::size_t bytes) const {
  return bytes <= ipc::inline_bytes && static_cast<std::int64_t>(bytes) <= card_.limits().max_pio_bytes;
}

std::size_t IbvCore::most_bytes() const {
  return static_cast<std::size_t>(card_.limits().max_message_bytes);
}

ipc::Request IbvCore::access(ipc::RequestVerb verb, std::uint64_t number, std::uint32_t target,
                             const Segment& segment, const std::byte* remote,
                             std::span<const std::byte> local) const {
  ipc::Request request;
  request.verb = verb;
  request.target = target;
  request.bytes = static_cast<std::int64_t>(local.size());
  request.flags = ipc::by_key;
  request.endpoint = card_.region_endpoint();
  request.key = segment.key;
  request.remote_address = reinterpret_cast<std::uint64_t>(remote);
  request.immediate = number;
  return request;
}

// A reliable connection reports a write when it is acknowledged.
void IbvCore::post_put(std::uint64_t number, std::uint32_t target, const Segment& segment,
                       const std::byte* destination, std::span<std::byte> local) {
  ipc::Request request = access(ipc::RequestVerb::put, number, target, segment, destination, local);
  request.flags |= ipc::want_remote;
  if (is_inline(local.size())) {
    request.flags |= ipc::from_cpu;
    card_.set_payload(request, local);
  } else {
    request.local_address = reinterpret_cast<std::uint64_t>(local.data());
  }
  post(request);
}

void IbvCore::post_get(std::uint64_t number, std::uint32_t target, const Segment& segment,
                       const std::byte* source, std::span<std::byte> local) {
  ipc::Request request = access(ipc::RequestVerb::get, number, target, segment, source, local);
  request.local_address = reinterpret_cast<std::uint64_t>(local.data());
  post(request);
}

void IbvCore::poll_reports() {
  while (!has_notification() && card_.poll()) continue;
}

void IbvCore::take(const ipc::Event& event) noexcept {
  if (event.kind == ipc::EventKind::arrived) {
    Received message{event.source, true, std::vector<std::byte>(static_cast<std::size_t>(event.bytes))};
    card_.read_payload(event, message.bytes);
    receive(std::move(message));
    return;
  }
  report(event.immediate);
}

}  // namespace apenet::gasnet
