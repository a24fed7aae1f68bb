#include "kernel/refuse.hpp"
#include "nic/bus_cards.hpp"
#include "nic/card_set.hpp"
#include "nic/hca/nic.hpp"

namespace apenet::hca {

namespace {

class Set final : public BusCardSet<Description, Cards, Nic> {
 public:
  using BusCardSet::BusCardSet;

  void list_engines(NodeId node, EngineList& engines) const override { nodes_[node].list_engines(engines); }

  void count(std::vector<Counter>& counters) const override {
    const Counters& counted = cards_.counters;
    counters.push_back({"packets", counted.packets});
    counters.push_back({"acknowledgements", counted.acknowledgements});
    counters.push_back({"connections", cards_.connections.size()});
    counters.push_back({"posts_held_back", counted.posts_held_back});
    counters.push_back({"reads_served", counted.reads_served});
    counters.push_back({"reads_held_back", counted.reads_held_back});
    counters.push_back({"receiver_not_ready", counted.not_ready});
    counters.push_back({"refused_packets", counted.refused_packets});
    counters.push_back({"context_misses", counted.context_misses});
  }

  void warn(std::vector<std::string>& warnings) const override {
    const Counters& counted = cards_.counters;
    if (counted.not_ready > 0) {
      warnings.push_back(std::to_string(counted.not_ready) +
                         " times a receive queue was empty and the sender tried again: the model posts a "
                         "buffer again after card.receive_repost_us, whatever the program does, and "
                         "card.rnr_timer_us is assumed");
    }
    if (counted.context_misses > 0) {
      warnings.push_back(std::to_string(counted.context_misses) +
                         " contexts of queue pairs were fetched from host memory: card.context_cache_entries "
                         "and card.context_miss_ns are assumed");
    }
  }
};

}  // namespace

void validate(const Description& card) {
  if (card.mtu_bytes % card.granule_bytes != 0) {
    refuse_value("card.mtu_bytes", std::to_string(card.mtu_bytes),
                 "a multiple of card.granule_bytes = " + std::to_string(card.granule_bytes));
  }
  constexpr std::int64_t max_packets = std::int64_t{1} << 31;  // Packet::sequence counts them
  require_at_most("card.max_message_bytes", card.max_message_bytes, max_packets * card.mtu_bytes);
  require_at_most("card.virtual_lanes", card.virtual_lanes, Transmitter::max_fifos);
  require_at_most("card.blueflame_bytes", card.blueflame_bytes, card.max_inline_bytes,
                  ", card.max_inline_bytes");
  require_at_most("card.messages_per_ack", card.messages_per_ack, card.send_queue_entries,
                  ", card.send_queue_entries: a full queue waits for an acknowledgement");
}

CardTraits traits_of(const Description& card, const HostDescription& host) {
  const std::int64_t overhead = card.header_bytes + card.trailer_bytes;
  return {.capabilities = {.put = true,
                           .get = true,
                           .max_message_bytes = card.max_message_bytes,
                           .max_send_bytes = card.max_message_bytes,
                           .max_pio_bytes = card.max_inline_bytes,
                           .channels = static_cast<std::uint16_t>(card.virtual_lanes)},
          .network_channels = static_cast<std::uint32_t>(card.virtual_lanes),
          .max_injection_fifos = Transmitter::max_fifos / std::max<std::int64_t>(1, card.virtual_lanes),
          .injection_fifos_reason = ", because this card has room for 64 on all of its card.virtual_lanes",
          .max_packet_wire_bytes =
              overhead + std::max(card.reth_bytes + card.immediate_bytes, card.aeth_bytes) + card.mtu_bytes,
          .packet_overhead_bytes = overhead,
          .doorbell_delay = host.bus.pio_write_latency,
          .no_loop_back = "an adapter returns such a message before its link, which is not modelled"};
}

std::unique_ptr<CardSet> make_set(const Description& card, const CardSurroundings& surroundings) {
  return std::make_unique<Set>(card, surroundings);
}

}  // namespace apenet::hca
