#include "kernel/refuse.hpp"
#include "nic/apelink_plus/nic.hpp"
#include "nic/bus_cards.hpp"
#include "nic/card_set.hpp"

namespace apenet::apelink_plus {

namespace {

class Set final : public CardSet {
 public:
  Set(const Description& card, const CardSurroundings& surroundings)
      : cards_(card, surroundings),
        plus_{.description = card, .gpu = {card.gpu, surroundings.host.bus.max_burst_bytes}},
        nodes_(surroundings, [&](Bus& bus, NodeId /*node*/, EventSource source) {
          return Nic({cards_, bus, nullptr, {source}}, plus_);
        }) {}

  Nic& card(NodeId node) override { return nodes_[node]; }
  Bus* bus(NodeId node) override { return &nodes_.bus(node); }
  void prepare(NodeId node, EventHandler::Ahead ahead) const override {
    if (ahead == EventHandler::Ahead::far) nodes_.prepare(node);
  }

  void list_engines(NodeId node, EngineList& engines) const override { nodes_[node].list_engines(engines); }

  void count(std::vector<Counter>& counters) const override {
    append_counters(cards_.counters, counters);
    counters.push_back({"tlb_hits", plus_.counters.tlb_hits});
    counters.push_back({"page_walks", plus_.counters.page_walks});
  }

  void warn(std::vector<std::string>& warnings) const override {
    append_warnings(cards_.counters, "APEnet+", warnings);
    const std::uint64_t gpu_packets = plus_.gpu.counters.reads + plus_.counters.gpu_writes;
    if (gpu_packets > 0) {
      warnings.push_back(std::to_string(gpu_packets) +
                         " packets were read from or written to a GPU's memory: its latencies and rates, "
                         "card.gpu_*, are assumed");
    }
  }

 private:
  apelink::Cards cards_;
  Cards plus_;
  BusCards<Nic> nodes_;
};

}  // namespace

void validate(const Description& card) {
  validate_common(card);
  require_at_most("card.max_send_bytes", card.max_send_bytes, card.max_message_bytes,
                  ", that is card.max_message_bytes");
  require_at_least("card.receive_ring_bytes", card.receive_ring_bytes, card.page_bytes);
  if ((card.gpu.read_rate.bytes > 0) != (card.gpu.write_rate.bytes > 0)) {
    refuse_value("card.gpu_write_bandwidth_mib_s",
                 std::to_string(card.gpu.write_rate.bytes) + " bytes per second",
                 "a positive rate if the read rate is positive, and zero otherwise");
  }
}

CardTraits traits_of(const Description& card, const HostDescription& host) {
  CardTraits traits = apelink::common_traits(card, host);
  traits.capabilities.gpu_memory = card.gpu.is_there();
  traits.capabilities.drops = true;
  traits.capabilities.translates_addresses = true;
  traits.capabilities.max_send_bytes = card.max_send_bytes;
  traits.capabilities.receive_ring_bytes = card.receive_ring_bytes;
  return traits;
}

std::unique_ptr<CardSet> make_set(const Description& card, const CardSurroundings& surroundings) {
  return std::make_unique<Set>(card, surroundings);
}

}  // namespace apenet::apelink_plus
