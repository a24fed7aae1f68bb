#include "api/gasnet/extoll_conduit.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace apenet::gasnet {
namespace {

using extoll_api::Nla;
using extoll_api::Velo;

// The largest request. A process returns credits once it owes as many as this, so that a sender that has all
// others left can send the largest request.
constexpr std::size_t largest_message_bytes =
    Header::bytes + max_arguments * sizeof(Argument) + max_medium_bytes;

// Tags of packets.
constexpr std::uint8_t first_packet = 0;
constexpr std::uint8_t further_packet = 1;

std::vector<std::byte> serialise(const Outgoing& message) {
  const std::uint64_t header = message.header.encode();
  const auto arguments = std::as_bytes(message.arguments);
  std::vector<std::byte> bytes(message.header.bytes_by_message());
  std::memcpy(bytes.data(), &header, Header::bytes);
  std::ranges::copy(arguments, bytes.begin() + Header::bytes);
  const std::span payload = std::span(bytes).last(message.header.payload_bytes_by_message());
  const auto address = reinterpret_cast<std::uint64_t>(message.destination);
  std::ranges::copy(message.header.category == Category::medium
                        ? message.payload
                        : std::as_bytes(std::span(&address, 1)).first(payload.size()),
                    payload.begin());
  return bytes;
}

Header header_of(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), Header::bytes);
  return Header::decode(word);
}

}  // namespace

ExtollConduit::ExtollConduit(extoll_api::Device& device, Implementation implementation)
    : device_(device), implementation_(implementation), access_(device), peers_(device.card().rank_count()) {
  for (Peer& peer : peers_) peer.credits = most_credits();
}

std::uint32_t ExtollConduit::packets(std::size_t bytes) const {
  const std::size_t each = device_.velo().packet_bytes();
  return static_cast<std::uint32_t>((bytes + each - 1) / each);
}

std::uint32_t ExtollConduit::most_credits() const {
  return 2 * packets(largest_message_bytes);
}

std::optional<std::uint64_t> ExtollConduit::open_segment(std::span<std::byte> memory) {
  const std::uint64_t region = access_.open_segment(memory);
  return region == 0 ? std::nullopt : std::optional(region);
}

RMA2_NLA ExtollConduit::remote(std::uint32_t rank, const std::byte* address) const {
  const Segment& segment = segments_[rank];
  return Nla::make(segment.key, reinterpret_cast<std::uint64_t>(address) - segment.address);
}

template <typename Done>
void ExtollConduit::wait(std::string_view call, Done done) {
  while (!done()) {
    take_packets();
    if (access_.has_notification()) take_notifications();
    if (done()) return;
    card().wait_until(call,
                      [&] { return done() || device_.velo().has_message() || access_.has_notification(); });
  }
}

bool ExtollConduit::take_credits(std::uint32_t target, const Header& header) {
  const std::uint32_t needed = packets(header.bytes_by_message());
  Peer& peer = peers_[target];
  if (peer.credits < needed) return false;
  peer.credits -= needed;
  return true;
}

void ExtollConduit::send(std::uint32_t target, Outgoing message) {
  wait("gasnet_AM", [this] { return !is_sending_; });
  is_sending_ = true;
  Peer& peer = peers_[target];
  message.header.credits = static_cast<std::uint8_t>(std::min(peer.owed, Header::most_credits));
  peer.owed -= message.header.credits;
  Pending pending;
  // The data first: the message's header is not worked on before they are there.
  if (message.header.category == Category::long_message && !message.payload.empty()) {
    wait("gasnet_AM", [this] { return access_.has_places(); });
    access_.put(target, remote(target, message.destination), message.payload, true, pending);
  }
  const std::vector<std::byte> bytes = serialise(message);
  card().charge_copy(bytes.size());
  send_packets(target, bytes);
  is_sending_ = false;
  wait("gasnet_AM", [&pending] { return pending.is_empty(); });
}

void ExtollConduit::send_packets(std::uint32_t target, std::span<const std::byte> bytes) {
  const std::size_t each = device_.velo().packet_bytes();
  std::uint8_t tag = first_packet;
  for (std::size_t begin = 0; begin < bytes.size(); begin += each) {
    wait("gasnet_AM", [&] { return device_.velo().has_room(target); });
    device_.velo().send(target, bytes.subspan(begin, std::min(each, bytes.size() - begin)), tag, 0);
    tag = further_packet;
  }
}

void ExtollConduit::give_back(const Incoming& request) {
  Peer& peer = peers_[request.source];
  peer.owed += request.credits_used;
  while (peer.owed >= packets(largest_message_bytes)) send(request.source, {});
}

void ExtollConduit::take_packets() {
  while (device_.velo().has_message()) take_packet();
}

void ExtollConduit::take_packet() {
  Velo& velo = device_.velo();
  const std::uint64_t status = velo.oldest().status;
  const std::size_t length = VELO2_STATUS_LENGTH(status);
  const std::uint32_t source =
      *device_.peers().rank_of(VELO2_STATUS_NODEID(status), VELO2_STATUS_VPID(status));
  Peer& peer = peers_[source];
  if (VELO2_STATUS_TAG(status) == first_packet) peer.bytes.clear();
  const std::size_t begin = peer.bytes.size();
  peer.bytes.resize(begin + length);
  velo.take(std::span(peer.bytes).subspan(begin));
  if (implementation_ == Implementation::first) card().charge_copy(length);
  const Header header = header_of(peer.bytes);
  if (peer.bytes.size() < header.bytes_by_message()) return;
  card().charge_copy(peer.bytes.size());
  peer.credits += header.credits;
  if (header.category != Category::signal) finish_message(source);
}

void ExtollConduit::finish_message(std::uint32_t source) {
  Peer& peer = peers_[source];
  Incoming message;
  message.source = source;
  message.header = header_of(peer.bytes);
  message.credits_used = packets(peer.bytes.size());
  const std::size_t argument_bytes = message.header.argument_count * sizeof(Argument);
  std::memcpy(message.arguments.data(), peer.bytes.data() + Header::bytes, argument_bytes);
  const auto payload = peer.bytes.begin() + static_cast<std::ptrdiff_t>(Header::bytes + argument_bytes);
  message.payload.assign(payload, peer.bytes.end());
  if (message.header.category == Category::long_message && message.payload.empty()) {
    peer.long_ones.push_back(std::move(message));
    ++long_waiting_;
    match_landings(source);
  } else {
    if (message.header.category == Category::long_message)
      std::memcpy(&message.long_payload, message.payload.data(), sizeof message.long_payload);
    ready_.push_back(std::move(message));
  }
}

void ExtollConduit::match_landings(std::uint32_t source) {
  Peer& peer = peers_[source];
  while (!peer.long_ones.empty() && !peer.landings.empty()) {
    Incoming message = std::move(peer.long_ones.front());
    const std::uint64_t own = segments_[card().rank()].address;
    message.long_payload = reinterpret_cast<std::byte*>(own + Nla::offset(peer.landings.front().address));
    peer.long_ones.pop_front();
    peer.landings.pop_front();
    --long_waiting_;
    ready_.push_back(std::move(message));
  }
}

void ExtollConduit::take_notifications() {
  access_.look();
  std::deque<Landing>& landings = access_.landings();
  for (; !landings.empty(); landings.pop_front()) {
    peers_[landings.front().source].landings.push_back(landings.front());
    match_landings(landings.front().source);
  }
}

void ExtollConduit::put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source,
                        Pending& pending) {
  while (!source.empty()) {
    const auto part = source.first(std::min(source.size(), RemoteAccess::most_bytes));
    wait("gasnet_put", [this] { return access_.has_places(); });
    access_.put(target, remote(target, destination), part, false, pending);
    destination += part.size();
    source = source.subspan(part.size());
  }
}

void ExtollConduit::get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination,
                        Pending& pending) {
  while (!destination.empty()) {
    const auto part = destination.first(std::min(destination.size(), RemoteAccess::most_bytes));
    wait("gasnet_get", [this] { return access_.has_places(); });
    access_.get(target, remote(target, source), part, pending);
    source += part.size();
    destination = destination.subspan(part.size());
  }
}

void ExtollConduit::look() {
  if (implementation_ == Implementation::first) {
    if (device_.velo().look()) take_packet();
    take_notifications();
    return;
  }
  while (device_.velo().look()) take_packet();
  if (expects_notification()) take_notifications();
}

std::optional<Incoming> ExtollConduit::next() {
  if (ready_.empty()) return std::nullopt;
  Incoming message = std::move(ready_.front());
  ready_.pop_front();
  return message;
}

void ExtollConduit::await_progress(std::string_view call, const std::function<bool()>& done,
                                   std::optional<Time> most) {
  const auto has_progress = [&] {
    return done() || has_next() || device_.velo().has_message() || access_.has_notification();
  };
  if (most) {
    card().wait_for(call, *most, has_progress);
  } else {
    card().wait_until(call, has_progress);
  }
  take_packets();
  if (access_.has_notification()) take_notifications();
}

void ExtollConduit::await(std::string_view call, const std::function<bool()>& done) {
  wait(call, done);
}

}  // namespace apenet::gasnet
