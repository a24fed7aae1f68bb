#include "api/gasnet/udp_core.hpp"

#include <algorithm>

namespace apenet::gasnet {
namespace {

constexpr std::size_t ip_header_bytes = 20;
constexpr std::size_t udp_header_bytes = 8;
constexpr std::size_t fragment_unit_bytes = 8;  // RFC 791: offsets of fragments count these

// Request::immediate of a packet: size of its datagram, and whether that begins a message.
struct Label {
  std::size_t datagram_bytes = 0;
  bool is_first = true;

  [[nodiscard]] std::uint64_t encode() const { return std::uint64_t{datagram_bytes} << 1U | is_first; }
  [[nodiscard]] static Label decode(std::uint64_t word) { return {word >> 1U, (word & 1U) != 0}; }
};

}  // namespace

UdpCore::UdpCore(ipc::Client& client, std::uint8_t rail)
    : client_(client),
      card_(client, ipc::Interface::gasnet, *this, rail),
      costs_(card_.facts().udp),
      arriving_(client.size()) {}

Core::Habits UdpCore::habits() const {
  return {.packet_bytes = datagram_bytes,
          .credits = depth,
          .slack = 0,
          .long_payload = LongPayload::in_message,
          .packets_a_poll = datagrams_a_poll};
}

void UdpCore::send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) {
  const std::uint64_t label = Label{packet.size(), is_first}.encode();
  const std::size_t room = (static_cast<std::size_t>(costs_.mtu_bytes) - ip_header_bytes) /
                           fragment_unit_bytes * fragment_unit_bytes;
  std::size_t udp_bytes = udp_header_bytes;  // in the first packet
  card_.charge(costs_.system_call + costs_.send);
  do {
    const auto part = packet.first(std::min(packet.size(), room - udp_bytes));
    card_.charge_copy(part.size());
    ipc::Request request;
    request.verb = ipc::RequestVerb::send;
    request.target = target;
    request.bytes =
        costs_.header_bytes + static_cast<std::int64_t>(ip_header_bytes + udp_bytes + part.size());
    request.immediate = label;
    card_.set_payload(request, part);
    card_.post(request);
    packet = packet.subspan(part.size());
    udp_bytes = 0;
    if (!packet.empty()) card_.charge(costs_.send_packet);
  } while (!packet.empty());
}

// Each look is a system call.
bool UdpCore::look() {
  while (!has_packet() && card_.look(costs_.system_call)) continue;
  return has_packet();
}

void UdpCore::take(std::span<std::byte> to) {
  card_.charge(costs_.system_call + costs_.receive);
  card_.charge_copy(to.size());
  std::ranges::copy(socket_.front().bytes, to.begin());
  socket_.pop_front();
}

// Without an event the process sleeps until the kernel has done its work on the oldest datagram.
void UdpCore::await(std::string_view call, const std::function<bool()>& done, std::optional<Time> most) {
  const std::int64_t start_ps = clock().now_ps();
  while (!done()) {
    if (!socket_.empty()) {
      clock().wait_to(socket_.front().ready_ps);
      continue;
    }
    const auto is_over = [&] { return done() || !socket_.empty(); };
    if (!most) {
      card_.wait_until(call, is_over);
      continue;
    }
    const std::int64_t left_ps = start_ps + most->ps() - clock().now_ps();
    if (left_ps <= 0 || !card_.wait_for(call, Time::from_ps(left_ps), is_over)) return;
  }
}

void UdpCore::take(const ipc::Event& event) noexcept {
  // What comes from the same node has passed no card.
  const Time interrupt = client_.is_near(event.source) ? Time::zero() : costs_.interrupt;
  const std::int64_t interrupted_ps = event.time_ps + interrupt.ps();
  const bool is_busy = event.time_ps < kernel_works_until_ps_;
  kernel_works_until_ps_ = (is_busy ? kernel_works_until_ps_ : interrupted_ps) + costs_.receive_packet.ps();
  const Label label = Label::decode(event.immediate);
  std::vector<std::byte>& bytes = arriving_[event.source];
  const std::size_t begin = bytes.size();
  const bool is_inline = event.slot >= ipc::slots_per_process;
  bytes.resize(begin + (is_inline ? event.inline_length : event.slot_length));
  card_.read_payload(event, std::span(bytes).subspan(begin));
  if (bytes.size() < label.datagram_bytes) return;
  socket_.push_back({event.source, label.is_first, kernel_works_until_ps_, std::move(bytes)});
  bytes.clear();
}

}  // namespace apenet::gasnet
