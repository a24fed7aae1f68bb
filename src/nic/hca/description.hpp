// The host channel adapter as plain data, in base units.
#pragma once

#include <cstdint>

#include "kernel/time.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet::hca {

struct Description {
  static constexpr CardKind kind{.name = "hca", .conduit = "ibv"};
  std::int64_t mtu_bytes = 0;
  std::int64_t header_bytes = 0;
  std::int64_t trailer_bytes = 0;
  std::int64_t reth_bytes = 0;
  std::int64_t aeth_bytes = 0;
  std::int64_t immediate_bytes = 0;
  std::int64_t granule_bytes = 0;
  std::int64_t max_message_bytes = 0;
  std::int64_t virtual_lanes = 0;
  std::int64_t wqe_bytes = 0;
  std::int64_t doorbell_bytes = 0;
  std::int64_t cqe_bytes = 0;
  std::int64_t max_inline_bytes = 0;
  std::int64_t blueflame_bytes = 0;
  bool is_blueflame_for_all = false;
  std::int64_t send_queue_entries = 0;
  std::int64_t wqe_prefetch_entries = 0;
  std::int64_t receive_queue_entries = 0;
  std::int64_t context_cache_entries = 0;
  std::int64_t messages_per_ack = 0;
  std::int64_t outstanding_rdma_reads = 0;
  Time wqe_latency;
  Time wqe_interval;
  Time receive_latency;
  Time read_service;
  Time receive_repost;
  Time rnr_timer;
  Time context_miss;
  Time blueflame_interval;
};

inline void list_fields(schema::Fields& fields, Description& card) {
  using namespace schema::ranges;
  constexpr std::int64_t largest_header = 1 << 10;
  fields("mtu_bytes", card.mtu_bytes, count.up_to(1 << 20), "largest payload of a packet");
  fields("header_bytes", card.header_bytes, count.up_to(largest_header),
         "routing and base transport headers of every packet");
  fields("trailer_bytes", card.trailer_bytes, count_or_zero.up_to(largest_header),
         "checksums of every packet; on Ethernet also preamble and gap");
  fields("reth_bytes", card.reth_bytes, count_or_zero.up_to(largest_header),
         "RDMA header, in the first packet of a write and in a read request");
  fields("aeth_bytes", card.aeth_bytes, count_or_zero.up_to(largest_header),
         "acknowledgement header, in an acknowledgement and in the first and last packet of a read response");
  fields("immediate_bytes", card.immediate_bytes, count_or_zero.up_to(largest_header),
         "immediate data, in the last packet of a write that notifies the target");
  fields("granule_bytes", card.granule_bytes, count, "every payload is padded to a multiple of it");
  fields("max_message_bytes", card.max_message_bytes, size, "largest message of a work queue entry");
  fields("virtual_lanes", card.virtual_lanes, count, "virtual lanes of a port: the channels of a descriptor");
  fields("wqe_bytes", card.wqe_bytes, count, "size of a work queue entry without inline payload");
  fields("doorbell_bytes", card.doorbell_bytes, count, "size of a doorbell, which the processor writes");
  fields("cqe_bytes", card.cqe_bytes, count,
         "size of a completion queue entry, which the card writes to host memory by DMA");
  fields("max_inline_bytes", card.max_inline_bytes, count_or_zero,
         "largest payload that the library can copy into the work queue entry");
  fields("blueflame_bytes", card.blueflame_bytes, count_or_zero,
         "largest inline payload whose entry the processor writes to the card");
  fields("blueflame_entries", card.is_blueflame_for_all, schema::Choice{"inline", "all"},
         "entries that the processor writes to the card: those with inline payload, or those without payload "
         "as well");
  fields("send_queue_entries", card.send_queue_entries, count,
         "capacity of a queue pair: entries posted and not yet acknowledged");
  fields("wqe_prefetch_entries", card.wqe_prefetch_entries, count,
         "entries that the card fetches ahead of the one that it sends");
  fields("receive_queue_entries", card.receive_queue_entries, count,
         "capacity of the shared receive queue of a process");
  fields("context_cache_entries", card.context_cache_entries, count_or_zero,
         "queue pair contexts that the card caches; 0: all");
  fields("messages_per_ack", card.messages_per_ack, count,
         "one message in so many asks for an acknowledgement");
  fields("outstanding_rdma_reads", card.outstanding_rdma_reads, count, "reads in progress of a queue pair");
  fields("wqe_latency_ns", card.wqe_latency, not_negative,
         "from the work queue entry on the card to its first packet");
  fields("wqe_interval_ns", card.wqe_interval, not_negative,
         "least time between two work queue entries of any queue pairs");
  fields("receive_latency_ns", card.receive_latency, not_negative,
         "from the header of a packet to the address of its payload");
  fields("read_service_ns", card.read_service, not_negative,
         "from a read request to the first read of memory for its response");
  fields("receive_repost_us", card.receive_repost, not_negative,
         "from a visible completion until its receive buffer is posted again");
  fields("rnr_timer_us", card.rnr_timer, positive, "from \"receiver not ready\" to the next attempt");
  fields("context_miss_ns", card.context_miss, not_negative, "time to fetch a context from host memory");
  fields("blueflame_interval_ns", card.blueflame_interval, not_negative.optional(),
         "between two lines of 64 bytes of an entry that the processor writes to the card");
}

void validate(const Description& card);
[[nodiscard]] CardTraits traits_of(const Description& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const Description& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet::hca
