#include "api/gasnet/apelink_core.hpp"

#include <algorithm>
#include <utility>

namespace apenet::gasnet {

ApelinkCore::ApelinkCore(ipc::Client& client)
    : OneSidedCore(client.size(), {.operations_to_peer = most_under_way_to_peer,
                                   .operations = most_under_way,
                                   .copied_bytes = most_copied_bytes}),
      port_(client, APE_RDMA_ANY_PORT) {
  outgoing_.resize(std::min(port_.max_send_bytes(), largest_request_bytes(LongPayload::before_message)));
  port_.enroll(outgoing_.data(), outgoing_.size());
}

Core::Traits ApelinkCore::traits() const {
  const std::size_t each = outgoing_.size();
  const auto largest =
      static_cast<std::uint32_t>((largest_request_bytes(LongPayload::before_message) + each - 1) / each);
  return {.packet_bytes = each,
          .credits = messages_to_peer * largest,
          .slack = messages_to_peer / 2 * largest,
          .long_payload = LongPayload::before_message};
}

// The library takes the bytes when it posts the descriptor, so one place of registered memory is enough; the
// limit of operations stands for the places that a card would need.
void ApelinkCore::send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) {
  std::ranges::copy(packet, outgoing_.begin());
  const ape_rdma_segment list{outgoing_.data(), packet.size()};
  const std::uint64_t cookie = begin_message(target) << 1U | (is_first ? 1U : 0U);
  port_.send({port_.address_of(target), APE_RDMA_ANY_QUEUE, APE_RDMA_SIGNAL, cookie}, {&list, 1});
}

// The event's costs are charged when it is taken, its copy here.
void ApelinkCore::take_event(const ape_rdma_event& event) {
  if (event.kind == APE_RDMA_RX_DONE) {
    Received message{port_.rank_of(event.source), (event.cookie & 1U) != 0,
                     std::vector<std::byte>(event.bytes)};
    port_.read_message(message.bytes);
    receive(std::move(message));
    return;
  }
  report(event.cookie >> 1U);
}

template <typename Done>
void ApelinkCore::take_events(Done done) {
  ape_rdma_event event{};
  while (!done() && port_.poll(event)) take_event(event);
}

bool ApelinkCore::poll() {
  take_events([this] { return has_packet(); });
  return has_packet();
}

void ApelinkCore::poll_reports() {
  take_events([this] { return has_notification(); });
}

void ApelinkCore::await(std::string_view call, const std::function<bool()>& done, std::optional<Time> most) {
  const std::int64_t start_ps = card().now_ps();
  while (!done()) {
    std::optional<Time> left;
    if (most) left = Time::from_ps(start_ps + most->ps() - card().now_ps());
    if (left && left->ps() <= 0) return;
    OneSidedCore::await(
        call, [&] { return done() || port_.has_event(); }, left);
    ape_rdma_event event{};
    if (port_.has_event() && port_.poll(event)) take_event(event);
  }
}

std::optional<std::uint64_t> ApelinkCore::publish(std::span<std::byte> segment) {
  try {
    port_.enroll(segment.data(), segment.size());
    return port_.publish(segment.data(), segment.size());
  } catch (const rdma::Failure&) {
    return std::nullopt;  // the card's table is full
  }
}

void ApelinkCore::register_memory(std::span<std::byte> memory) {
  port_.enroll(memory.data(), memory.size());
  ++registered_[memory.data()];
}

// Another access under way may begin at the same address.
void ApelinkCore::unregister_memory(std::span<std::byte> memory) {
  const auto found = registered_.find(memory.data());
  if (--found->second > 0) return;
  registered_.erase(found);
  port_.withdraw(memory.data());
}

std::size_t ApelinkCore::most_bytes() const {
  return static_cast<std::size_t>(std::min(port_.card().limits().max_message_bytes, most_access_bytes));
}

void ApelinkCore::post_put(std::uint64_t number, std::uint32_t target, const Segment& segment,
                           const std::byte* destination, std::span<std::byte> local) {
  const ape_rdma_segment list{local.data(), local.size()};
  const std::size_t offset = reinterpret_cast<std::uint64_t>(destination) - segment.address;
  port_.put({port_.address_of(target), APE_RDMA_ANY_QUEUE, APE_RDMA_DELIVERED, number << 1U}, {&list, 1},
            {segment.key, offset});
}

void ApelinkCore::post_get(std::uint64_t number, std::uint32_t target, const Segment& segment,
                           const std::byte* source, std::span<std::byte> local) {
  const ape_rdma_segment list{local.data(), local.size()};
  const std::size_t offset = reinterpret_cast<std::uint64_t>(source) - segment.address;
  port_.get({port_.address_of(target), APE_RDMA_ANY_QUEUE, 0, number << 1U}, {&list, 1},
            {segment.key, offset});
}

}  // namespace apenet::gasnet
