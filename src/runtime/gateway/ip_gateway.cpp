#include "runtime/gateway/ip_gateway.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>

#include "ip/packets.hpp"
#include "kernel/refuse.hpp"
#include "machine/ip_packet.hpp"
#include "machine/node_name.hpp"

namespace apenet {
namespace {

constexpr std::int64_t ps_per_ns = 1000;
constexpr std::int64_t ns_per_s = 1'000'000'000;
constexpr std::size_t most_packet_bytes = 65536;
constexpr int most_at_once = 64;  // packets of one interface, before the others have their turn
constexpr Time late_time = Time::from_ps(1'000'000'000);

std::int64_t host_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * ns_per_s + now.tv_nsec;
}

std::vector<NodeId> nodes_of(const std::vector<IpGateway::Port>& ports) {
  std::vector<NodeId> nodes;
  for (const IpGateway::Port& port : ports) nodes.push_back(port.node);
  return nodes;
}

const MachineDescription& checked(const MachineDescription& description) {
  if (description.ip_software.costs.mtu_bytes == 0)
    refuse_value("software.ip", "absent", "the interface's packets, for TCP/IP");
  return description;
}

}  // namespace

IpGateway::IpGateway(const MachineDescription& description, std::vector<Port> ports,
                     const std::string& capture_path, std::int64_t date_s)
    : ports_(std::move(ports)),
      simulation_(description.seed),
      machine_(simulation_, checked(description), nodes_of(ports_)),
      buffer_(most_packet_bytes) {
  machine_.set_sink(*this);
  machine_.fill_receive_rings();
  machine_.begin(Time::zero());
  std::vector<ip::PacketCapture::Interface> interfaces;
  for (ProcessId kernel = 0; kernel < ports_.size(); ++kernel) {
    const Port& port = ports_[kernel];
    kernel_at_[port.address] = kernel;
    losses_.emplace_back(description.ip_software.loss_probability, description.seed, port.node);
    interfaces.push_back({port.address, node_name(description, port.node)});
  }
  if (!capture_path.empty()) capture_.emplace(capture_path, interfaces, date_s);
}

Time IpGateway::host_time() const {
  return Time::from_ps((host_ns() - began_ns_) * ps_per_ns);
}

void IpGateway::run(int stop_fd) {
  began_ns_ = host_ns();
  std::vector<pollfd> watched;
  for (const Port& port : ports_) watched.push_back({port.interface_fd, POLLIN, 0});
  watched.push_back({stop_fd, POLLIN, 0});
  while ((watched.back().revents & POLLIN) == 0) {
    advance(host_time());
    const Time next = simulation_.next_time();
    timespec wait{};
    if (next != Time::never()) {
      const std::int64_t ns = std::max<std::int64_t>(0, (next - host_time()).ps() / ps_per_ns);
      wait = {ns / ns_per_s, ns % ns_per_s};
    }
    if (ppoll(watched.data(), watched.size(), next == Time::never() ? nullptr : &wait, nullptr) < 0 &&
        errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "ppoll");
    for (ProcessId kernel = 0; kernel < ports_.size(); ++kernel)
      if ((watched[kernel].revents & POLLIN) != 0) take_packets(kernel);
  }
  if (capture_) capture_->finish();
}

void IpGateway::advance(Time until) {
  while (simulation_.next_time() <= until) simulation_.step();
}

void IpGateway::take_packets(ProcessId kernel) {
  for (int number = 0; number < most_at_once; ++number) {
    const ssize_t bytes = read(ports_[kernel].interface_fd, buffer_.data(), buffer_.size());
    if (bytes <= 0) return;
    take_packet(kernel, std::span(buffer_).first(static_cast<std::size_t>(bytes)));
  }
}

void IpGateway::take_packet(ProcessId kernel, std::span<const std::byte> packet) {
  const auto found = ip::is_version_4(packet) ? kernel_at_.find(ip::target_of(packet)) : kernel_at_.end();
  if (found == kernel_at_.end()) {
    ++counters_.unreachable;
    return;
  }
  ++counters_.packets;
  counters_.bytes += packet.size();
  const Time now = std::max(host_time(), simulation_.now());
  if (capture_) capture_->see(kernel, ip::PacketCapture::Direction::out, now, now, packet);
  if (losses_[kernel].next()) {
    ++counters_.lost;
    return;
  }
  const std::uint64_t number = next_packet_++;
  packets_[number].assign(packet.begin(), packet.end());
  machine_.post(now, packet_descriptor(machine_, kernel, found->second, packet.size(), number));
}

void IpGateway::complete(const Completion& completion) {
  if (completion.kind != CompletionKind::arrived) return;
  if (completion.mailbox_packets > 0) machine_.give_back(simulation_.now(), completion.process);
  const auto found = packets_.find(completion.message);
  const std::vector<std::byte>& packet = found->second;
  if (write(ports_[completion.process].interface_fd, packet.data(), packet.size()) < 0) ++counters_.refused;
  packets_.erase(found);
  const Time delay = host_time() - simulation_.now();
  counters_.latest = std::max(counters_.latest, delay);
  if (delay >= late_time) ++counters_.late;
}

void IpGateway::deliver_payload(ProcessId /*source*/, std::uint64_t /*message*/) {}

}  // namespace apenet
