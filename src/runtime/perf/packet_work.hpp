// PacketWork: packets alone, for measuring how fast a network engine is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/large_array.hpp"
#include "kernel/simulation.hpp"
#include "machine/description.hpp"
#include "network/network.hpp"

namespace apenet {

struct PacketWorkOptions {
  std::uint32_t packets_per_node = 100;
  std::uint32_t payload_bytes = 512;
  std::uint32_t far_percent = 10;  // to a node drawn among all; the others go to one of the neighbours
  Time interval = Time::zero();    // between two packets of a node; zero: as fast as the network takes them
};

// What a measured run did, exactly: the same on every host.
struct WorkDone {
  std::uint64_t nodes = 0;
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;
  std::uint64_t hops = 0;  // links crossed by packets
  std::uint64_t events = 0;
  Time virtual_time;
};

// A network whose nodes do nothing but inject packets and consume them: no card, no bus. Neighbours are those
// of the cube; destinations come from one random stream a node.
class PacketWork {
 public:
  // Throws std::invalid_argument as make_network does.
  PacketWork(const MachineDescription& description, const PacketWorkOptions& options);
  ~PacketWork();
  PacketWork(const PacketWork&) = delete;
  PacketWork& operator=(const PacketWork&) = delete;

  // Once: until every packet is delivered.
  WorkDone run();

 private:
  class Node;
  struct Shared;
  std::unique_ptr<Shared> shared_;
  LargeArray<Node> nodes_;
};

}  // namespace apenet
