// The host channel adapter as plain data, in base units; each field is a key of [card] in the machine files.
#pragma once

#include <cstdint>

#include "kernel/time.hpp"

namespace apenet {

struct HcaDescription {
  std::int64_t mtu_bytes = 2048;     // payload of a packet
  std::int64_t header_bytes = 20;    // of every packet: routing and base transport headers
  std::int64_t trailer_bytes = 6;    // of every packet: check sums; on Ethernet preamble and gap as well
  std::int64_t reth_bytes = 16;      // RDMA header: first packet of a write, read request
  std::int64_t aeth_bytes = 4;       // acknowledgement header: acknowledgement, ends of a read response
  std::int64_t immediate_bytes = 4;  // last packet of a write that tells the target
  std::int64_t granule_bytes = 4;    // payloads are padded to it
  std::int64_t max_message_bytes = std::int64_t{1} << 31;
  std::int64_t virtual_lanes = 8;     // the channels of a descriptor
  std::int64_t wqe_bytes = 64;        // work queue entry, without inline payload
  std::int64_t doorbell_bytes = 8;    // as the processor writes it
  std::int64_t cqe_bytes = 64;        // completion queue entry, written to host memory by DMA
  std::int64_t max_inline_bytes = 0;  // payload that the library can copy into the work queue entry
  std::int64_t blueflame_bytes = 0;   // of it, payload up to which the processor writes the entry to the card
  bool is_blueflame_for_all = false;  // and every entry without payload
  std::int64_t send_queue_entries = 128;      // of a queue pair: posted and not yet acknowledged
  std::int64_t wqe_prefetch_entries = 8;      // of them, on the card ahead of the one being sent
  std::int64_t receive_queue_entries = 4096;  // shared receive queue of a process
  std::int64_t context_cache_entries = 0;     // queue pair contexts on the card, 0: room for all
  std::int64_t messages_per_ack = 8;          // every so many messages one asks for an acknowledgement
  std::int64_t outstanding_rdma_reads = 16;   // of a queue pair
  Time wqe_latency;                           // work queue entry present to first packet
  Time wqe_interval;                          // between two work queue entries, of all queue pairs
  Time receive_latency;                       // header to address
  Time read_service;                          // read request received to its first packet asking for data
  Time receive_repost;                        // completion visible to receive buffer posted again
  Time rnr_timer;                             // refused by "receiver not ready" to the next attempt
  Time context_miss;                          // context fetched from host memory
};

}  // namespace apenet
