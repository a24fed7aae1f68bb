#include "api/gasnet/conduit.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace apenet::gasnet {
namespace {

std::vector<std::byte> serialise(const Outgoing& message, LongPayload way) {
  const std::uint64_t header = message.header.encode();
  const auto address = reinterpret_cast<std::uint64_t>(message.destination);
  std::vector<std::byte> bytes(message.header.bytes_by_message(way));
  auto end = bytes.begin();
  const auto append = [&end](std::span<const std::byte> part) { end = std::ranges::copy(part, end).out; };
  append(std::as_bytes(std::span(&header, 1)));
  append(std::as_bytes(message.arguments));
  if (message.header.has_address(way)) append(std::as_bytes(std::span(&address, 1)));
  if (message.header.has_payload(way)) append(message.payload);
  return bytes;
}

Header header_of(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), Header::bytes);
  return Header::decode(word);
}

}  // namespace

Conduit::Conduit(std::unique_ptr<Core> core, Reach reach)
    : core_(std::move(core)),
      reach_(reach),
      traits_(core_->traits()),
      memory_(core_->memory()),
      peers_(core_->card().rank_count()) {
  if (reach_ == Reach::everything) traits_.long_payload = LongPayload::in_message;
  for (Peer& peer : peers_) peer.credits = traits_.credits;
}

std::array<std::size_t, 3> Conduit::part_ends(const Header& header) const {
  const std::size_t whole = header.bytes_by_message(traits_.long_payload);
  if (!traits_.separates_sections) return {whole, whole, whole};
  return {Header::bytes, Header::bytes + header.argument_count * sizeof(Argument), whole};
}

std::uint32_t Conduit::packets(const Header& header) const {
  std::size_t count = 0;
  std::size_t begin = 0;
  for (const std::size_t end : part_ends(header)) {
    count += (end - begin + traits_.packet_bytes - 1) / traits_.packet_bytes;
    begin = end;
  }
  return static_cast<std::uint32_t>(count);
}

std::size_t Conduit::max_long_bytes() const {
  if (memory_ == nullptr) return max_carried_bytes;
  return has_remote_access() ? memory_->most_bytes() : max_medium_bytes;  // the core's credits are for these
}

std::optional<std::uint64_t> Conduit::open_segment(std::span<std::byte> memory) {
  return memory_ == nullptr ? std::optional<std::uint64_t>(0) : memory_->open_segment(memory);
}

void Conduit::know_segments(const std::vector<Segment>& segments) {
  if (memory_ != nullptr) memory_->know_segments(segments);
}

template <typename Done>
void Conduit::wait(std::string_view call, Done done) {
  while (!done()) {
    take_arrivals();
    if (done()) return;
    core_->await(
        call, [&] { return done() || has_arrival(); }, std::nullopt);
  }
}

bool Conduit::take_credits(std::uint32_t target, const Header& header) {
  const std::uint32_t needed = packets(header);
  Peer& peer = peers_[target];
  if (peer.credits < needed) return false;
  peer.credits -= needed;
  return true;
}

void Conduit::send(std::uint32_t target, Outgoing message) {
  wait("gasnet_AM", [this] { return !is_sending_; });
  is_sending_ = true;
  Peer& peer = peers_[target];
  message.header.credits = static_cast<std::uint8_t>(std::min(peer.owed, Header::most_credits));
  peer.owed -= message.header.credits;
  Pending pending;
  // The data first: the message's header is not worked on before they are there.
  const bool is_long = message.header.category == Category::long_message;
  if (is_long && !message.payload.empty() && traits_.long_payload != LongPayload::in_message) {
    wait("gasnet_AM", [&] { return memory_->has_place(target); });
    memory_->put(target, message.destination, message.payload, true, pending);
  }
  const std::vector<std::byte> bytes = serialise(message, traits_.long_payload);
  card().charge_copy(bytes.size());
  send_packets(target, message.header, bytes);
  is_sending_ = false;
  wait("gasnet_AM", [&pending] { return pending.is_empty(); });
}

void Conduit::send_packets(std::uint32_t target, const Header& header, std::span<const std::byte> bytes) {
  std::size_t begin = 0;
  for (const std::size_t end : part_ends(header)) {
    while (begin < end) {
      wait("gasnet_AM", [&] { return core_->has_room(target); });
      const std::size_t part = std::min(traits_.packet_bytes, end - begin);
      core_->send(target, bytes.subspan(begin, part), begin == 0);
      begin += part;
    }
  }
}

void Conduit::give_back(std::uint32_t source) {
  while (peers_[source].owed > traits_.slack) send(source, {});
}

void Conduit::take_arrivals() {
  while (core_->has_packet()) take_packet();
  if (memory_ != nullptr && memory_->has_notification()) take_notifications();
}

void Conduit::take_packet() {
  const Core::Arrival arrival = core_->oldest();
  Peer& peer = peers_[arrival.source];
  if (arrival.is_first) peer.bytes.clear();
  const std::size_t begin = peer.bytes.size();
  peer.bytes.resize(begin + arrival.bytes);
  core_->take(std::span(peer.bytes).subspan(begin));
  if (traits_.copies_packets) card().charge_copy(arrival.bytes);
  const Header header = header_of(peer.bytes);
  if (peer.bytes.size() < header.bytes_by_message(traits_.long_payload)) return;
  if (traits_.gathers) card().charge_copy(peer.bytes.size());
  peer.credits += header.credits;
  if (header.category != Category::signal) finish_message(arrival.source);
}

void Conduit::finish_message(std::uint32_t source) {
  Peer& peer = peers_[source];
  Incoming message;
  message.source = source;
  message.header = header_of(peer.bytes);
  message.credits_used = packets(message.header);
  const std::size_t argument_bytes = message.header.argument_count * sizeof(Argument);
  std::memcpy(message.arguments.data(), peer.bytes.data() + Header::bytes, argument_bytes);
  const auto payload = peer.bytes.begin() + static_cast<std::ptrdiff_t>(Header::bytes + argument_bytes);
  message.payload.assign(payload, peer.bytes.end());
  if (message.header.category == Category::long_message) {
    finish_long(std::move(message));
  } else {
    ready_.push_back(std::move(message));
  }
}

void Conduit::finish_long(Incoming message) {
  const std::uint32_t source = message.source;
  if (!message.header.has_address(traits_.long_payload)) {
    peers_[source].long_ones.push_back(std::move(message));
    ++long_waiting_;
    match_landings(source);
    return;
  }
  std::memcpy(&message.long_payload, message.payload.data(), sizeof message.long_payload);
  const auto data = std::span(message.payload).subspan(sizeof message.long_payload);
  if (!data.empty()) {
    card().charge_copy(data.size());
    std::ranges::copy(data, message.long_payload);
  }
  ready_.push_back(std::move(message));
}

void Conduit::match_landings(std::uint32_t source) {
  Peer& peer = peers_[source];
  while (!peer.long_ones.empty() && !peer.landings.empty()) {
    Incoming message = std::move(peer.long_ones.front());
    message.long_payload = peer.landings.front().address;
    peer.long_ones.pop_front();
    peer.landings.pop_front();
    --long_waiting_;
    ready_.push_back(std::move(message));
  }
}

void Conduit::take_notifications() {
  memory_->poll_notifications();
  std::deque<Landing>& landings = memory_->landings();
  for (; !landings.empty(); landings.pop_front()) {
    peers_[landings.front().source].landings.push_back(landings.front());
    match_landings(landings.front().source);
  }
}

void Conduit::put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source,
                  Pending& pending) {
  while (!source.empty()) {
    const auto part = source.first(std::min(source.size(), memory_->most_bytes()));
    wait("gasnet_put", [&] { return memory_->has_place(target); });
    memory_->put(target, destination, part, false, pending);
    destination += part.size();
    source = source.subspan(part.size());
  }
}

void Conduit::get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination,
                  Pending& pending) {
  while (!destination.empty()) {
    const auto part = destination.first(std::min(destination.size(), memory_->most_bytes()));
    wait("gasnet_get", [&] { return memory_->has_place(target); });
    memory_->get(target, source, part, pending);
    source += part.size();
    destination = destination.subspan(part.size());
  }
}

void Conduit::poll() {
  for (std::uint32_t taken = 0; taken < traits_.packets_a_poll && core_->poll(); ++taken) take_packet();
  if (memory_ == nullptr) return;
  if (traits_.always_polls_notifications || expects_notification()) take_notifications();
}

void Conduit::await(std::string_view call, const std::function<bool()>& done) {
  wait(call, done);
}

std::optional<Incoming> Conduit::next() {
  if (ready_.empty()) return std::nullopt;
  Incoming message = std::move(ready_.front());
  ready_.pop_front();
  return message;
}

void Conduit::await_progress(std::string_view call, const std::function<bool()>& done,
                             std::optional<Time> most) {
  core_->await(
      call, [&] { return done() || has_next() || has_arrival(); }, most);
  take_arrivals();
}

}  // namespace apenet::gasnet
