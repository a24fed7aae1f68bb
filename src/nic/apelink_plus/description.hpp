// The APEnet+ card as plain data, in base units.
#pragma once

#include <cstdint>

#include "host/description.hpp"
#include "kernel/time.hpp"
#include "nic/apelink/description.hpp"

namespace apenet::apelink_plus {

struct Description : apelink::CommonDescription {
  static constexpr CardKind kind{.name = "apelink-plus", .layers = {"rdma"}, .conduit = "apelink"};
  std::int64_t page_bytes = 0;
  std::int64_t tlb_entries = 0;
  Time tlb_hit;
  Time page_walk;
  std::int64_t receive_engines = 0;
  Time receive_setup;
  std::int64_t max_send_bytes = 0;
  std::int64_t receive_ring_bytes = 0;
  PeerMemoryDescription gpu;  // without rates: there is no GPU
};

inline void list_fields(schema::Fields& fields, Description& card) {
  using namespace schema::ranges;
  list_fields(fields, static_cast<apelink::CommonDescription&>(card));
  fields("page_bytes", card.page_bytes, count.up_to(1 << 30), "page of virtual memory");
  fields("tlb_entries", card.tlb_entries, count_or_zero.up_to(1 << 16),
         "pages in the TLB, which is fully associative and replaces the least recently used; 0: every page "
         "needs a walk");
  fields("tlb_hit_ns", card.tlb_hit, not_negative, "translation of a page that the TLB holds");
  fields("page_walk_ns", card.page_walk, not_negative,
         "translation of any other page, by the card's soft processor");
  fields("receive_engines", card.receive_engines, count.up_to(64), "DMA controllers that write payload");
  fields("receive_setup_ns", card.receive_setup, not_negative, "set-up of a DMA controller, for each packet");
  fields("max_send_bytes", card.max_send_bytes, count_or_zero, "largest message without an address");
  fields("receive_ring_bytes", card.receive_ring_bytes, count,
         "receive ring of a process, which holds its messages without an address one after another");
  fields("gpu_read_latency_ns", card.gpu.read_latency, not_negative,
         "from the card's request to the first data of the GPU");
  fields("gpu_read_bandwidth_mib_s", card.gpu.read_rate, not_negative,
         "rate of reads from the GPU's memory; 0 for reads and writes: there is no GPU");
  fields("gpu_write_latency_ns", card.gpu.write_latency, not_negative,
         "from the acceptance of a write to the GPU's memory until it is visible there");
  fields("gpu_write_bandwidth_mib_s", card.gpu.write_rate, not_negative,
         "rate of writes to the GPU's memory");
}

void validate(const Description& card);
[[nodiscard]] CardTraits traits_of(const Description& card, const HostDescription& host);
[[nodiscard]] std::unique_ptr<CardSet> make_set(const Description& card,
                                                const CardSurroundings& surroundings);

}  // namespace apenet::apelink_plus
