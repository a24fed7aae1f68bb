// The APEnet+ card as plain data, in base units.
#pragma once

#include <cstdint>

#include "host/description.hpp"
#include "kernel/time.hpp"
#include "nic/apelink/description.hpp"

namespace apenet {

struct ApelinkPlusDescription : ApeCardDescription {
  static constexpr CardKind kind{"apelink-plus"};
  std::int64_t page_bytes = 0;
  std::int64_t tlb_entries = 0;
  Time tlb_hit;
  Time page_walk;
  std::int64_t receive_engines = 0;
  Time receive_setup;
  std::int64_t max_send_bytes = 0;
  std::int64_t receive_ring_bytes = 0;
  PeerMemoryDescription gpu;  // without rates: there is none
};

inline void list_fields(schema::Fields& fields, ApelinkPlusDescription& card) {
  using namespace schema::ranges;
  list_fields(fields, static_cast<ApeCardDescription&>(card));
  fields("page_bytes", card.page_bytes, count.up_to(1 << 30), "page of virtual memory");
  fields("tlb_entries", card.tlb_entries, count_or_zero.up_to(1 << 16),
         "pages in the TLB: fully associative, least recently used; 0: every page is walked for");
  fields("tlb_hit_ns", card.tlb_hit, not_negative, "translation of a page by the TLB");
  fields("page_walk_ns", card.page_walk, not_negative, "translation of a page by the card's soft processor");
  fields("receive_engines", card.receive_engines, count.up_to(64), "DMA controllers that write payload");
  fields("receive_setup_ns", card.receive_setup, not_negative, "of an engine, for each packet");
  fields("max_send_bytes", card.max_send_bytes, count_or_zero, "largest message without an address");
  fields("receive_ring_bytes", card.receive_ring_bytes, count,
         "ring of each process, where messages without an address land one behind the other");
  fields("gpu_read_latency_ns", card.gpu.read_latency, not_negative,
         "from the card's request to the GPU's first answer");
  fields("gpu_read_bandwidth_mib_s", card.gpu.read_rate, not_negative,
         "of reads from the GPU's memory; 0, for reads and writes: there is no GPU");
  fields("gpu_write_latency_ns", card.gpu.write_latency, not_negative,
         "of a write to the GPU's memory: from taken in to visible there");
  fields("gpu_write_bandwidth_mib_s", card.gpu.write_rate, not_negative, "of writes to the GPU's memory");
}

void validate(const ApelinkPlusDescription& card, const HostDescription& host);
[[nodiscard]] CardFacts facts_of(const ApelinkPlusDescription& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const ApelinkPlusDescription& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet
