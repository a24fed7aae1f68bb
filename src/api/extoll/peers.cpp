#include "api/extoll/peers.hpp"

namespace apenet::extoll_api {

Peers::Peers(const ipc::Client& client) : addresses_(client.size()) {
  for (std::uint32_t rank = 0; rank < client.size(); ++rank) {
    const std::uint32_t node = client.node_of(rank);
    std::vector<std::uint32_t>& processes = processes_of_[node];
    if (node < most_nodes && processes.size() < most_vpids) {
      addresses_[rank] =
          Address{static_cast<std::uint16_t>(node), static_cast<std::uint8_t>(processes.size())};
    }
    processes.push_back(rank);
  }
}

std::optional<std::uint32_t> Peers::rank_of(std::uint32_t nodeid, std::uint32_t vpid) const {
  const auto node = processes_of_.find(nodeid);
  if (node == processes_of_.end() || vpid >= node->second.size()) return std::nullopt;
  const std::uint32_t rank = node->second[vpid];
  return has_address(rank) ? std::optional(rank) : std::nullopt;
}

}  // namespace apenet::extoll_api
