#include "kernel/refuse.hpp"
#include "nic/card_set.hpp"
#include "nic/tnw/tnw_nic.hpp"

namespace apenet {

namespace {

class TnwSet final : public CardSet {
 public:
  TnwSet(const TnwDescription& card, const CardSurroundings& surroundings)
      : cards_{.simulation = surroundings.simulation,
               .network = *surroundings.network,
               .messages = surroundings.messages,
               .placement = surroundings.placement,
               .grid = TnwGrid(surroundings.wiring, TnwCards::links),
               .description = card} {
    nics_.reserve(surroundings.nodes);
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nics_.push_back(std::make_unique<TnwNic>(cards_, node));
    }
  }

  Nic& card(NodeId node) override { return *nics_[node]; }

  void fill_receive_rings() override { cards_.first_credit_bytes = cards_.description.ring_bytes; }

  void count(std::vector<Counter>& counters) const override {
    const TnwCounters& counted = cards_.counters;
    counters.push_back({"packets", counted.packets});
    counters.push_back({"acknowledgements", counted.acknowledgements});
    counters.push_back({"credits", counted.credits});
    counters.push_back({"waits_for_credit", counted.waits_for_credit});
    counters.push_back({"messages_to_strangers", counted.strangers});
    counters.push_back({"forwards", counted.forwards});
  }

  void warn(std::vector<std::string>& warnings) const override {
    const TnwCounters& counted = cards_.counters;
    if (counted.strangers > 0) {
      warnings.push_back(std::to_string(counted.strangers) +
                         " messages to nodes that are not neighbours were forwarded by software " +
                         std::to_string(counted.forwards) +
                         " times on their way: the links of TNW lead only to nearest neighbours, and "
                         "card.forward_service_us is assumed");
    }
    if (counted.confirmed > 0) {
      warnings.push_back(std::to_string(counted.confirmed) +
                         " remote completions were confirmed by a message of the target's software: this is "
                         "assumed");
    }
  }

 private:
  TnwCards cards_;
  std::vector<std::unique_ptr<TnwNic>> nics_;
};

}  // namespace

void validate(const TnwDescription& card, const HostDescription& /*host*/) {
  require_at_least("card.max_message_bytes", card.max_message_bytes, card.packet_bytes);
  constexpr std::int64_t max_channels = 64 / TnwCards::links - 1;  // flows of a card: a bit each
  require_at_most("card.channels", card.channels, max_channels);
  require_at_least("card.ring_bytes", card.ring_bytes, card.max_message_bytes);
}

CardFacts facts_of(const TnwDescription& card, const HostDescription& /*host*/) {
  const std::int64_t overhead = card.header_bytes + card.message_header_bytes;
  return {.capabilities = TnwNic::capabilities_of(card),
          .network_channels = static_cast<std::uint32_t>(2 * TnwCards::links * (card.channels + 1)),
          .max_packet_wire_bytes = std::max(
              {card.packet_bytes + overhead, card.acknowledgement_bytes, card.message_acknowledgement_bytes}),
          .packet_overhead_bytes = overhead,
          .max_processes = card.ports,
          .max_processes_key = "card.ports",
          .doorbell_delay = card.put_latency};
}

std::unique_ptr<CardSet> make_set(const TnwDescription& card, const CardSurroundings& surroundings) {
  return std::make_unique<TnwSet>(card, surroundings);
}

}  // namespace apenet
