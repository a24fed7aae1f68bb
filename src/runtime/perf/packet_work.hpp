// PacketWork: packets without cards, to measure how fast a network engine is.
#pragma once

#include <cstdint>
#include <memory>

#include "kernel/large_array.hpp"
#include "machine/description.hpp"

namespace apenet {

struct PacketWorkOptions {
  std::uint32_t packets_per_node = 100;
  std::uint32_t payload_bytes = 512;
  std::uint32_t far_percent = 10;  // share of packets with a random destination; the others go to a neighbour
  Time interval = Time::zero();    // between two packets of a node; zero: as fast as the network accepts them
};

// The exact work of a measured run, identical on every host.
struct WorkDone {
  std::uint64_t nodes = 0;
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;
  std::uint64_t hops = 0;  // links crossed by packets
  std::uint64_t events = 0;
  Time virtual_time;
};

// A network whose nodes only inject and consume packets, without card or bus. Neighbours are those of the
// cube; each node has its own random stream for destinations.
class PacketWork {
 public:
  // Throws std::invalid_argument like make_network().
  PacketWork(const MachineDescription& description, const PacketWorkOptions& options);
  ~PacketWork();
  PacketWork(const PacketWork&) = delete;
  PacketWork& operator=(const PacketWork&) = delete;

  // Runs until every packet is delivered. Call once.
  WorkDone run();

 private:
  class Node;
  struct Shared;
  std::unique_ptr<Shared> shared_;
  LargeArray<Node> nodes_;
};

}  // namespace apenet
