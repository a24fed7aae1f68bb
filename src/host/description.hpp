// The host side of a machine as plain data, in base units: I/O bus, memory copy, CPU rate.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "schema/fields.hpp"

namespace apenet {

struct BusDescription {
  ClockDomain clock;
  std::int64_t width_bytes = 0;
  bool full_duplex = false;
  std::int64_t transaction_overhead_cycles = 0;
  std::int64_t max_burst_bytes = 0;
  Time read_latency;
  std::uint32_t outstanding_reads = 0;
  Time pio_write_latency;  // the lookahead of the simulation
  // PCI Express only; the generation is 0 for any other bus.
  std::int64_t pcie_generation = 0;
  std::int64_t read_request_bytes = 0;
  std::int64_t completion_bytes = 0;
  std::int64_t packets_per_update = 0;
  std::int64_t posted_credit_bytes = 0;  // 0: never short
  Time credit_return = {};

  [[nodiscard]] bool is_pcie() const { return pcie_generation > 0; }
};

inline void list_fields(schema::Fields& fields, BusDescription& bus) {
  using namespace schema::ranges;
  fields("clock_mhz", bus.clock, positive, "clock of the bus");
  fields("width_bytes", bus.width_bytes, count, "bytes that cross the bus in one clock");
  fields(
      "duplex", bus.full_duplex, schema::Choice{"half", "full"}.optional(),
      "half: one set of wires for both directions (PCI-X); full: one for each (PCI Express, HyperTransport)");
  fields("transaction_overhead_cycles", bus.transaction_overhead_cycles, count_or_zero.or_another_key(),
         "overhead of each burst: arbitration, address, attributes, turnaround; not with pcie_generation");
  fields("max_burst_bytes", bus.max_burst_bytes, count, "largest payload of a burst");
  fields("read_latency_ns", bus.read_latency, not_negative,
         "split read: from the accepted request until its completion requests the bus");
  fields("outstanding_reads", bus.outstanding_reads, count, "split reads that a card may have in progress");
  fields("pio_write_latency_ns", bus.pio_write_latency, positive,
         "from a store of the CPU to its arrival at the card");
  fields("pcie_generation", bus.pcie_generation, schema::Range{1, 5}.optional(),
         "generation of PCI Express, whose packets are then the bursts, with their headers; absent: another "
         "bus");
  fields("read_request_bytes", bus.read_request_bytes, count.up_to(4096).optional(),
         "with pcie_generation: largest read request; outstanding_reads counts requests");
  fields("completion_bytes", bus.completion_bytes, count.up_to(4096).optional(),
         "with pcie_generation: largest payload of a read's completion, at most that of a packet");
  fields(
      "packets_per_update", bus.packets_per_update, count.up_to(64).optional(),
      "with pcie_generation: packets of a direction for which the other one carries one acknowledgement, and "
      "to the card an update of credits");
  fields(
      "posted_credit_bytes", bus.posted_credit_bytes, count.optional(),
      "with pcie_generation: payload of the card's writes for which the host has credits; absent: unlimited");
  fields("credit_return_ns", bus.credit_return, not_negative.optional(),
         "with posted_credit_bytes: from a write's packet to its credits' use by the card");
}

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
  std::int64_t copy_bytes_per_second = 0;
  std::int64_t gpu_copy_bytes_per_second = 0;  // 0: there is no GPU
  Time gpu_copy_latency;
  Time local_latency;
  std::int64_t flops_per_second = 0;
  bool caches_off = false;
  std::int64_t uncached_factor = 0;  // 0: not described
};

// The bus has a list of its own, BusDescription.
inline void list_fields(schema::Fields& fields, HostDescription& host) {
  using namespace schema::ranges;
  fields("copy_bandwidth_mib_s", host.copy_bytes_per_second, positive,
         "rate of the CPU's copies from memory to memory");
  fields("gpu_copy_bandwidth_mib_s", host.gpu_copy_bytes_per_second, positive.optional(),
         "rate of staged copies between the GPU and a pinned buffer of the host; absent: there is no GPU");
  fields("gpu_copy_latency_us", host.gpu_copy_latency, not_negative.optional(),
         "latency of such a copy: its call and its end");
  fields("local_latency_ns", host.local_latency, positive,
         "latency of a message between two processes of a node, in addition to its copy");
  fields("flops_per_second", host.flops_per_second, positive, "rate of a process, for ape_compute_flops");
  fields("caches", host.caches_off, schema::Choice{"on", "off"}.optional(),
         "caches of the processors; off: times of [software.*] (except interrupt_us), copies and "
         "local_latency_ns are multiplied by uncached_factor");
  fields("uncached_factor", host.uncached_factor, schema::Range{1, 1000}.optional(),
         "how many times as long software takes without caches");
}

// Throws std::invalid_argument naming the key, the value and what was expected.
void validate(const BusDescription& bus);

}  // namespace apenet
