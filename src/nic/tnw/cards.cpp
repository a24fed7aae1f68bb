#include "kernel/refuse.hpp"
#include "nic/card_set.hpp"
#include "nic/tnw/nic.hpp"

namespace apenet::tnw {

namespace {

class Set final : public CardSet {
 public:
  Set(const Description& card, const CardSurroundings& surroundings) : cards_(card, surroundings) {
    nics_.reserve(surroundings.nodes);
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nics_.push_back(std::make_unique<Nic>(cards_, node));
    }
  }

  Nic& card(NodeId node) override { return *nics_[node]; }

  void fill_receive_rings() override { cards_.first_credit_bytes = cards_.description.ring_bytes; }

  void list_engines(NodeId node, EngineList& engines) const override { nics_[node]->list_engines(engines); }

  void count(std::vector<Counter>& counters) const override {
    const Counters& counted = cards_.counters;
    counters.push_back({"packets", counted.packets});
    counters.push_back({"acknowledgements", counted.acknowledgements});
    counters.push_back({"credits", counted.credits});
    counters.push_back({"waits_for_credit", counted.waits_for_credit});
    counters.push_back({"messages_to_strangers", counted.strangers});
    counters.push_back({"forwards", counted.forwards});
  }

  void warn(std::vector<std::string>& warnings) const override {
    const Counters& counted = cards_.counters;
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
  Cards cards_;
  std::vector<std::unique_ptr<Nic>> nics_;
};

}  // namespace

void validate(const Description& card) {
  require_at_least("card.max_message_bytes", card.max_message_bytes, card.packet_bytes);
  constexpr std::int64_t max_channels = 64 / Cards::links - 1;  // flows of a card: a bit each
  require_at_most("card.channels", card.channels, max_channels);
  require_at_least("card.ring_bytes", card.ring_bytes, card.max_message_bytes);
}

CardTraits traits_of(const Description& card, const HostDescription& /*host*/) {
  const std::int64_t overhead = card.header_bytes + card.control_bytes;
  return {.capabilities = {.put = true,
                           .get = false,
                           .remote_access = false,
                           .needs_credit = true,
                           .max_message_bytes = card.max_message_bytes,
                           .max_send_bytes = card.max_message_bytes,
                           .channels = static_cast<std::uint16_t>(card.channels),
                           .ring_channel = static_cast<std::uint16_t>(card.channels)},
          .network_channels = static_cast<std::uint32_t>(2 * Cards::links * (card.channels + 1)),
          .max_injection_fifos = Cards::links,
          .injection_fifos_reason = ", one for each link",
          .shares_channels_out = true,
          .queues_are = "its links",
          .max_packet_wire_bytes = card.packet_bytes + overhead,
          .packet_overhead_bytes = overhead,
          .max_processes = card.ports,
          .max_processes_key = "card.ports",
          .doorbell_delay = card.put_latency,
          .forwards_by_software = true,
          .no_loop_back = "its links lead to neighbours only"};
}

std::unique_ptr<CardSet> make_set(const Description& card, const CardSurroundings& surroundings) {
  return std::make_unique<Set>(card, surroundings);
}

}  // namespace apenet::tnw
