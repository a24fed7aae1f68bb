#include "api/udp/socket.hpp"

#include <algorithm>

namespace apenet::udp {
namespace {

constexpr std::size_t ip_header_bytes = 20;
constexpr std::size_t udp_header_bytes = 8;
constexpr std::size_t fragment_unit_bytes = 8;  // RFC 791: offsets of fragments count these

// Request::immediate of a packet: size of its datagram, and its mark.
struct Label {
  std::size_t datagram_bytes = 0;
  bool is_marked = false;

  [[nodiscard]] std::uint64_t encode() const { return std::uint64_t{datagram_bytes} << 1U | is_marked; }
  [[nodiscard]] static Label decode(std::uint64_t word) { return {word >> 1U, (word & 1U) != 0}; }
};

}  // namespace

std::optional<std::uint8_t> Socket::find_rail(const ipc::Header& header) {
  for (std::uint8_t rail = 0; rail < header.rail_count; ++rail) {
    if (header.rails[rail].udp.mtu_bytes > 0) return rail;
  }
  return std::nullopt;
}

Socket::Socket(ipc::Client& client, ipc::Interface interface, std::uint8_t rail)
    : client_(client),
      card_(client, interface, *this, rail),
      costs_(card_.rail().udp),
      arriving_(client.size()) {}

void Socket::send(std::uint32_t target, std::span<const std::byte> datagram, bool is_marked) {
  const std::uint64_t label = Label{datagram.size(), is_marked}.encode();
  const std::size_t room = (static_cast<std::size_t>(costs_.mtu_bytes) - ip_header_bytes) /
                           fragment_unit_bytes * fragment_unit_bytes;
  std::size_t udp_bytes = udp_header_bytes;  // in the first packet
  card_.charge(costs_.system_call + costs_.send);
  do {
    const auto part = datagram.first(std::min(datagram.size(), room - udp_bytes));
    card_.charge_copy(part.size());
    ipc::Request request;
    request.verb = ipc::RequestVerb::send;
    request.target = target;
    request.bytes =
        costs_.header_bytes + static_cast<std::int64_t>(ip_header_bytes + udp_bytes + part.size());
    request.immediate = label;
    card_.set_payload(request, part);
    card_.post(request);
    datagram = datagram.subspan(part.size());
    udp_bytes = 0;
    if (!datagram.empty()) card_.charge(costs_.send_packet);
  } while (!datagram.empty());
}

bool Socket::poll() {
  while (!has_datagram() && card_.poll(costs_.system_call)) continue;
  return has_datagram();
}

void Socket::receive(std::span<std::byte> to) {
  const std::vector<std::byte>& bytes = waiting_.front().bytes;
  const auto taken = std::span(bytes).first(std::min(bytes.size(), to.size()));
  card_.charge(costs_.system_call + costs_.receive);
  card_.charge_copy(taken.size());
  std::ranges::copy(taken, to.begin());
  waiting_.pop_front();
}

// Without an event the process sleeps until the kernel has done its work on the oldest datagram.
void Socket::await(std::string_view call, const std::function<bool()>& done, std::optional<Time> most) {
  const std::int64_t start_ps = clock().now_ps();
  while (!done()) {
    if (!waiting_.empty()) {
      clock().wait_to(waiting_.front().ready_ps);
      continue;
    }
    const auto is_over = [&] { return done() || !waiting_.empty(); };
    if (!most) {
      card_.wait_until(call, is_over);
      continue;
    }
    const std::int64_t left_ps = start_ps + most->ps() - clock().now_ps();
    if (left_ps <= 0 || !card_.wait_for(call, Time::from_ps(left_ps), is_over)) return;
  }
}

void Socket::take(const ipc::Event& event) noexcept {
  const bool is_copy = message::goes_through_memory(card_.limits(), client_.is_same_node(event.source));
  const Time interrupt = is_copy ? Time::zero() : costs_.interrupt;
  const std::int64_t interrupted_ps = event.time_ps + interrupt.ps();
  const bool is_busy = event.time_ps < kernel_works_until_ps_;
  kernel_works_until_ps_ = (is_busy ? kernel_works_until_ps_ : interrupted_ps) + costs_.receive_packet.ps();
  const Label label = Label::decode(event.immediate);
  std::vector<std::byte>& bytes = arriving_[event.source];
  const std::size_t begin = bytes.size();
  const bool is_inline = event.slot == ipc::no_slot;
  bytes.resize(begin + (is_inline ? event.inline_length : event.slot_length));
  card_.read_payload(event, std::span(bytes).subspan(begin));
  if (bytes.size() < label.datagram_bytes) return;
  waiting_.push_back({event.source, label.is_marked, kernel_works_until_ps_, std::move(bytes)});
  bytes.clear();
}

}  // namespace apenet::udp
