// The host side of a machine as plain data: I/O bus, memory copy, CPU rate. Base units throughout.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

struct BusDescription {
  ClockDomain clock;
  std::int64_t width_bytes = 8;
  bool full_duplex = false;  // each direction has its own wires: PCI Express, HyperTransport; not PCI-X
  std::int64_t transaction_overhead_cycles = 0;  // arbitration, address, attributes, turnaround; per burst
  std::int64_t max_burst_bytes = 0;
  Time read_latency;  // split read: request accepted to completion asking for the bus
  std::uint32_t outstanding_reads = 1;
  Time pio_write_latency;  // CPU store to card; the lookahead of the simulation
};

// Memory of another device on the same I/O bus, which the card reads and writes without a copy by the host.
struct PeerMemoryDescription {
  Time read_latency;  // from the card's request to the device's first answer
  DataRate read_rate = DataRate::bytes_per_second(0);
  Time write_latency;  // from taken in to visible there
  DataRate write_rate = DataRate::bytes_per_second(0);
  [[nodiscard]] bool is_there() const { return read_rate.bytes > 0; }
};

struct HostDescription {
  BusDescription bus;
  std::int64_t copy_bytes_per_second = 0;      // CPU memory copy
  std::int64_t gpu_copy_bytes_per_second = 0;  // between GPU and pinned host memory; 0: there is no GPU
  Time gpu_copy_latency;                       // of one such copy: its call, its end
  Time local_latency;                          // message between two processes of a node, beside the copy
  std::int64_t flops_per_second = 0;           // for ape_compute_flops
};

// Throws std::invalid_argument naming the key, the value and what was expected.
void validate(const BusDescription& bus);

}  // namespace apenet
