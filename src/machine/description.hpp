// MachineDescription: a machine as plain data, before anything is wired or runs.
//
// Every field is in base units (picoseconds, hertz, bytes). The TOML files under machines/ say where each
// number comes from; python/apenet/machine reads and validates them and fills this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "network/description.hpp"

namespace apenet {

struct BusDescription {
  ClockDomain clock;
  std::int64_t width_bytes = 8;
  std::int64_t transaction_overhead_cycles = 0;  // arbitration, address, attributes, turnaround; per burst
  std::int64_t max_burst_bytes = 0;
  Time read_latency;                             // split read: request accepted to first data
  std::uint32_t outstanding_reads = 1;
  Time pio_write_latency;                        // CPU store to card; the lookahead of the simulation
};

struct HostDescription {
  BusDescription bus;
  std::int64_t copy_bytes_per_second = 0;  // CPU memory copy
  Time local_latency;                      // message between two processes of a node, beside the copy
  std::int64_t flops_per_second = 0;       // for ape_compute_flops
};

struct ApelinkDescription {
  ClockDomain clock;                      // crossbar
  std::int64_t header_bytes = 8;
  std::int64_t footer_bytes = 8;
  std::int64_t granule_bytes = 16;
  std::int64_t max_payload_bytes = 256;   // per packet
  std::int64_t max_message_bytes = 0;     // per descriptor
  std::int64_t descriptor_cycles = 0;     // fetch and decode one entry of the descriptor FIFO
  std::int64_t descriptor_fifo_entries = 0;
  std::int64_t lookup_cycles = 0;         // published-buffer table
  std::int64_t completion_bytes = 16;     // event written to host memory, by DMA
  std::int64_t max_pio_bytes = 0;
  std::int64_t ports = 4;
  Time get_service;                       // driver at the target turns a get request into a put
};

struct IdealDescription {
  Time latency;
  DataRate rate;
};

struct NicDescription {
  enum class Card : std::uint8_t { ideal, apelink };
  Card card = Card::ideal;
  ApelinkDescription apelink;
  IdealDescription ideal;
};

// CPU time of one software layer over the card, per step; the layer's library charges it to the process.
struct SoftwareDescription {
  Time send;               // post one message: library, descriptor
  Time receive;            // take one completed message: match, dispatch
  Time after_receive;      // off the critical path: give the receive buffer back to the card
  Time completion;         // take one local completion (sent, remote_done, got)
  Time rendezvous;         // one control step of a rendezvous, beside its send or receive
  Time publish;            // publish or register a buffer for remote access
  Time poll;               // one unsuccessful look for completions
  Time clock_read;         // gettimeofday and its kin
  std::int64_t eager_limit_bytes = 0;  // above it: rendezvous, zero copy
};

struct MachineDescription {
  std::string name;
  NetworkDescription network;
  HostDescription host;
  NicDescription nic;
  SoftwareDescription card_software;  // the card's own library (apelib), for the layer `card`
  SoftwareDescription mpi_software;   // MPI over the libfabric provider
  std::uint64_t seed = 1;
};

}  // namespace apenet
