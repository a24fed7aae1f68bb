// What the ranks wait for in calls on simulated sockets, for the report of a deadlock.
#include <poll.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/scheduler/ip_network.hpp"

namespace apenet {
namespace {

constexpr std::size_t most_named_waits = 4;  // sockets of one poll

std::string text_of(ip::Endpoint endpoint) {
  std::string text;
  for (unsigned shift = 32; shift > 0; shift -= 8)
    text += std::to_string(endpoint.address >> (shift - 8) & 0xffU) + (shift > 8 ? "." : ":");
  return text + std::to_string(endpoint.port);
}

}  // namespace

std::vector<std::string> IpNetwork::waits_of(std::uint32_t rank) const {
  const Node& node = nodes_[node_of_rank_[rank]];
  std::vector<std::string> waits;
  for (const std::uint64_t id : node.waiting) {
    const Call& call = calls_.at(id);
    if (call.rank == rank) waits.push_back(wait_text(node, call));
  }
  return waits;
}

std::string IpNetwork::wait_text(const Node& node, const Call& call) const {
  const ip::Sockets::Number socket = call.call.socket;
  const ip::Endpoint target{call.call.endpoint.address, static_cast<std::uint16_t>(call.call.endpoint.port)};
  switch (call.call.verb) {
    case ipc::SocketVerb::accept:
      return "accept on " + text_of(node.sockets->local(socket)) + ", to which nobody connects";
    case ipc::SocketVerb::connect:
      return "connect to " + text_of(target) + owner_text(node, node.sockets->local(socket), target);
    case ipc::SocketVerb::send:
      return "send on " + socket_text(node, socket) + ", whose buffer is full";
    case ipc::SocketVerb::receive:
      return "recv on " + socket_text(node, socket);
    case ipc::SocketVerb::poll:
      break;
    default:
      return "a call on " + socket_text(node, socket);
  }
  std::string text = "poll for ";
  for (std::size_t i = 0; i < call.polled.size() && i < most_named_waits; ++i) {
    const ipc::SocketPoll& polled = call.polled[i];
    const bool listens = node.sockets->get(polled.socket, ip::SocketOption::is_listening) == 1;
    const char* const what = listens                          ? "connections"
                             : (polled.events & POLLIN) == 0  ? "space"
                             : (polled.events & POLLOUT) == 0 ? "data"
                                                              : "data or space";
    text += std::string(i > 0 ? "; " : "") + what + " on " + socket_text(node, polled.socket);
  }
  if (call.polled.empty()) return "poll of no simulated socket";
  const std::size_t more = call.polled.size() - std::min(call.polled.size(), most_named_waits);
  return more == 0 ? text : text + "; and " + std::to_string(more) + " more";
}

std::string IpNetwork::socket_text(const Node& node, ip::Sockets::Number socket) const {
  const ip::Endpoint local = node.sockets->local(socket);
  ip::Endpoint remote;
  if (node.sockets->remote(socket, remote) != 0) return text_of(local);
  return text_of(local) + ", connected to " + text_of(remote) + owner_text(node, local, remote);
}

std::string IpNetwork::owner_text(const Node& node, ip::Endpoint local, ip::Endpoint remote) const {
  const bool is_own = remote.address >> 24U == ip::loopback_address >> 24U;
  const auto found = node_at_.find(is_own ? node.address : remote.address);
  if (found == node_at_.end()) return ", an address that no node has";
  const Node& peer = nodes_[found->second];
  std::string text;
  for (const auto& [socket, rank] : peer.owner) {
    if (peer.sockets->local(socket).port != remote.port) continue;
    ip::Endpoint back;
    if (peer.sockets->remote(socket, back) == 0) {
      if (back.port == local.port) return " (rank " + std::to_string(rank) + ")";
    } else if (peer.sockets->get(socket, ip::SocketOption::is_listening) == 1) {
      text = " (rank " + std::to_string(rank) + ", which has not accepted it)";
    }
  }
  return text;
}

}  // namespace apenet
