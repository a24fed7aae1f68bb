// Synthetic traffic on a network without cards, measured in the usual way: latency over load.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network/description.hpp"

namespace apenet {

// The nodes that send and receive. Patterns number them in this order.
struct TrafficNodes {
  std::vector<NodeId> nodes = {};           // empty: all
  std::vector<std::uint32_t> extents = {};  // those of their box; empty: none
};

struct TrafficOptions {
  std::string pattern = "uniform";
  double load = 0.1;  // flits that a node offers per flit time of a link, for each injection FIFO at most 1
  std::uint32_t packet_flits = 1;
  std::uint64_t seed = 1;
  std::int64_t warmup_cycles = 5000;
  std::int64_t measure_cycles = 7500;
  std::int64_t drain_cycles = 25000;  // limit for the measured packets to arrive
  // Also measure the packets generated before the window that were still queued at their sources when it
  // began, behind those in the source's FIFO. BookSim2 does.
  bool measures_queued = false;
  TrafficNodes partition = {};
};

struct TrafficPoint {
  double offered = 0;                 // as requested
  double accepted = 0;                // flits that arrived in the window, per node and flit time
  double least_accepted = 0;          // at the node that received the fewest of them
  double most_accepted = 0;           // at the node that received the most
  double packet_latency_cycles = 0;   // from generation to arrival of the tail
  double network_latency_cycles = 0;  // from the header leaving the source to arrival of the tail
  double min_latency_cycles = 0;
  double max_latency_cycles = 0;
  double hops = 0;  // links crossed
  bool is_saturated = false;
  std::uint64_t packets = 0;     // number of packets in the averages
  std::uint64_t link_flits = 0;  // flits that crossed links in all cycles, the work of an engine
  std::int64_t cycles = 0;       // length of the whole run
  // Deviations of the engine from its description, and limits of the results.
  std::vector<std::string> warnings;
};

// Every node generates packets of packet_flits by a Bernoulli trial in every cycle, into an unbounded queue.
// A node with several injection FIFOs has as many sources of an equal part of the load, which are the queues
// of InjectionRule::queue, and an unbounded queue in front of each FIFO. Sinks accept everything at once.
// Latencies are averages over the measured packets: those generated in the window, and those that
// measures_queued adds.
//
// A point is saturated if not all of those packets have arrived when the drain ends, if less than 95 % of the
// packets generated in the window arrived in it, or if packets waited in their source for longer than twice
// the network latency, on average.
//
// Throws std::invalid_argument, which names the option or key, its value and what was expected.
[[nodiscard]] TrafficPoint run_traffic(const NetworkDescription& network, const TrafficOptions& options);

// The links that the packets generated up to the end of the window cross, at least; for the flit engine,
// which moves each flit on its own, that their flits cross. The host's time is proportional to it. An
// estimate: the mean of 10,000 destinations. Throws like run_traffic.
[[nodiscard]] double count_link_crossings(const NetworkDescription& network, const TrafficOptions& options);

}  // namespace apenet
