// Peers: the processes of the program by EXTOLL's addresses, node and process on it (vpid).
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/ipc/client.hpp"

namespace apenet::extoll_api {

struct Address {
  std::uint16_t nodeid = 0;
  std::uint8_t vpid = 0;
};

class Peers {
 public:
  // As many as the fields of status words and notifications hold.
  static constexpr std::uint32_t most_nodes = 0xfffe;
  static constexpr std::uint32_t most_vpids = 0xff;

  // Processes of a node are numbered in the order of their ranks. Those beyond the limits have no address.
  explicit Peers(const ipc::Client& client);

  [[nodiscard]] bool has_address(std::uint32_t rank) const { return addresses_[rank].has_value(); }
  // Requires has_address(rank).
  [[nodiscard]] Address of(std::uint32_t rank) const { return *addresses_[rank]; }
  [[nodiscard]] std::optional<std::uint32_t> rank_of(std::uint32_t nodeid, std::uint32_t vpid) const;
  // Whether a process of the program is on the node.
  [[nodiscard]] bool has_node(std::uint32_t nodeid) const { return processes_of_.contains(nodeid); }
  [[nodiscard]] std::uint32_t node_count() const { return static_cast<std::uint32_t>(processes_of_.size()); }

 private:
  std::vector<std::optional<Address>> addresses_;                               // per rank
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> processes_of_;  // ranks of each node
};

}  // namespace apenet::extoll_api
