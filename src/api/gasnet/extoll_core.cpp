#include "api/gasnet/extoll_core.hpp"

namespace apenet::gasnet {
namespace {

using extoll_api::Nla;

// Tags of packets.
constexpr std::uint8_t first_packet = 0;
constexpr std::uint8_t further_packet = 1;

}  // namespace

// Twice the packets of the largest request, and it is returned once half are owed: a sender that has the
// others left can send the largest one.
Core::Traits ExtollCore::traits() const {
  const std::size_t each = device_.velo().packet_bytes();
  const bool is_first = implementation_ == Implementation::first;
  const std::size_t for_sections = is_first ? 2 : 0;  // each of three may leave its last packet part empty
  const auto largest = static_cast<std::uint32_t>(
      (largest_request_bytes(LongPayload::notified) + each - 1) / each + for_sections);
  return {.packet_bytes = each,
          .credits = 2 * largest,
          .slack = largest - 1,
          .long_payload = LongPayload::notified,
          .packets_a_poll = is_first ? 1U : unlimited,
          .separates_sections = is_first,
          .gathers = true,
          .copies_packets = is_first,
          .always_polls_notifications = is_first};
}

void ExtollCore::send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) {
  device_.velo().send(target, packet, is_first ? first_packet : further_packet, 0);
}

Core::Arrival ExtollCore::oldest() const {
  const std::uint64_t status = device_.velo().oldest().status;
  return {*device_.peers().rank_of(VELO2_STATUS_NODEID(status), VELO2_STATUS_VPID(status)),
          VELO2_STATUS_TAG(status) == first_packet, VELO2_STATUS_LENGTH(status)};
}

std::optional<std::uint64_t> ExtollCore::open_segment(std::span<std::byte> memory) {
  const std::uint64_t region = access_.open_segment(memory);
  return region == 0 ? std::nullopt : std::optional(region);
}

RMA2_NLA ExtollCore::remote(std::uint32_t rank, const std::byte* address) const {
  const Segment& segment = segments_[rank];
  return Nla::make(segment.key, reinterpret_cast<std::uint64_t>(address) - segment.address);
}

void ExtollCore::put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source,
                     bool tells_target, Pending& pending) {
  access_.put(target, remote(target, destination), source, tells_target, pending);
}

void ExtollCore::get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination,
                     Pending& pending) {
  access_.get(target, remote(target, source), destination, pending);
}

void ExtollCore::poll_notifications() {
  access_.poll();
  std::deque<RemoteAccess::Landed>& landed = access_.landed();
  for (; !landed.empty(); landed.pop_front()) {
    const std::uint64_t own = segments_[card().rank()].address;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of this process
    auto* const address = reinterpret_cast<std::byte*>(own + Nla::offset(landed.front().address));
    landings_.push_back({landed.front().source, address});
  }
}

}  // namespace apenet::gasnet
