// The host channel adapter as plain data, in base units.
#pragma once

#include <cstdint>

#include "kernel/time.hpp"
#include "nic/card_kind.hpp"
#include "schema/fields.hpp"

namespace apenet {

struct HcaDescription {
  static constexpr CardKind kind{"hca"};
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
};

inline void list_fields(schema::Fields& fields, HcaDescription& card) {
  using namespace schema::ranges;
  constexpr std::int64_t largest_header = 1 << 10;
  fields("mtu_bytes", card.mtu_bytes, count.up_to(1 << 20), "largest payload of a packet");
  fields("header_bytes", card.header_bytes, count.up_to(largest_header),
         "of every packet: routing and base transport headers");
  fields("trailer_bytes", card.trailer_bytes, count_or_zero.up_to(largest_header),
         "of every packet: check sums; on Ethernet preamble and gap as well");
  fields("reth_bytes", card.reth_bytes, count_or_zero.up_to(largest_header),
         "RDMA header: first packet of a write, read request");
  fields("aeth_bytes", card.aeth_bytes, count_or_zero.up_to(largest_header),
         "acknowledgement header: acknowledgement, ends of a read response");
  fields("immediate_bytes", card.immediate_bytes, count_or_zero.up_to(largest_header),
         "last packet of a write that tells the target");
  fields("granule_bytes", card.granule_bytes, count, "a payload is padded to a multiple of it");
  fields("max_message_bytes", card.max_message_bytes, size, "largest message of a work queue entry");
  fields("virtual_lanes", card.virtual_lanes, count, "virtual lanes of a port: the channels of a descriptor");
  fields("wqe_bytes", card.wqe_bytes, count, "work queue entry, without inline payload");
  fields("doorbell_bytes", card.doorbell_bytes, count, "doorbell, as the processor writes it");
  fields("cqe_bytes", card.cqe_bytes, count, "completion queue entry, written to host memory by DMA");
  fields("max_inline_bytes", card.max_inline_bytes, count_or_zero,
         "largest payload that the library can copy into the work queue entry");
  fields("blueflame_bytes", card.blueflame_bytes, count_or_zero,
         "largest inline payload whose entry the processor writes to the card");
  fields("blueflame_entries", card.is_blueflame_for_all, schema::Choice{"inline", "all"},
         "entries that the processor writes to the card: those with inline payload, or those without payload "
         "as well");
  fields("send_queue_entries", card.send_queue_entries, count,
         "of a queue pair: posted and not yet acknowledged");
  fields("wqe_prefetch_entries", card.wqe_prefetch_entries, count,
         "entries on the card ahead of the one being sent");
  fields("receive_queue_entries", card.receive_queue_entries, count, "shared receive queue of a process");
  fields("context_cache_entries", card.context_cache_entries, count_or_zero,
         "queue pair contexts on the card; 0: room for all");
  fields("messages_per_ack", card.messages_per_ack, count,
         "messages for each that asks for an acknowledgement");
  fields("outstanding_rdma_reads", card.outstanding_rdma_reads, count, "of a queue pair");
  fields("wqe_latency_ns", card.wqe_latency, not_negative, "work queue entry present to first packet");
  fields("wqe_interval_ns", card.wqe_interval, not_negative,
         "between two work queue entries, of all queue pairs");
  fields("receive_latency_ns", card.receive_latency, not_negative, "header of a packet to address");
  fields("read_service_ns", card.read_service, not_negative,
         "read request received to its first packet asking for data");
  fields("receive_repost_us", card.receive_repost, not_negative,
         "completion visible to receive buffer posted again");
  fields("rnr_timer_us", card.rnr_timer, positive, "refused by \"receiver not ready\" to the next attempt");
  fields("context_miss_ns", card.context_miss, not_negative, "to fetch a context from host memory");
}

void validate(const HcaDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const HcaDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const HcaDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
