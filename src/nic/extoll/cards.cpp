#include <algorithm>

#include "kernel/refuse.hpp"
#include "nic/bus_cards.hpp"
#include "nic/card_set.hpp"
#include "nic/extoll/nic.hpp"
#include "nic/extoll/send_times.hpp"

namespace apenet::extoll {

namespace {

class Set final : public BusCardSet<Description, Cards, Nic> {
 public:
  Set(const Description& card, const CardSurroundings& surroundings)
      : BusCardSet(card, surroundings), send_times_(card, surroundings.host.bus, surroundings.wiring) {}

  [[nodiscard]] SendTimes send_times(std::int64_t bytes, Time packet_interval) const override {
    return send_times_.of(bytes, packet_interval);
  }

  void list_engines(NodeId node, EngineList& engines) const override { nodes_[node].list_engines(engines); }

  void count(std::vector<Counter>& counters) const override {
    const Counters& counted = cards_.counters;
    counters.push_back({"packets", counted.packets});
    counters.push_back({"velo_packets", counted.velo_packets});
    counters.push_back({"acknowledgements", counted.acknowledgements});
    counters.push_back({"gets_served", counted.gets_served});
    counters.push_back({"packets_held_back", counted.packets_held_back});
    counters.push_back({"trains_reassembled", counted.trains_reassembled});
  }

  void warn(std::vector<std::string>& warnings) const override {
    const Counters& counted = cards_.counters;
    if (counted.acknowledgements > 0) {
      warnings.push_back(
          std::to_string(counted.acknowledgements) +
          " remote completions were acknowledged by a packet of the target's card: this is "
          "assumed, because EXTOLL's put notifies only its two ends and sends no acknowledgement");
    }
    if (counted.packets_held_back > 0) {
      warnings.push_back(std::to_string(counted.packets_held_back) +
                         " VELO packets found their mailbox full and blocked the packets behind them: "
                         "card.velo_mailbox_entries is assumed");
    }
  }

 private:
  SendTimesOf send_times_;
};

}  // namespace

void validate(const Description& card) {
  constexpr std::int64_t max_packets = std::int64_t{1} << 31;  // Packet::sequence counts them
  require_at_most("card.ports", card.ports, RmaUnit::max_ports);
  require_at_least("card.velo_max_message_bytes", card.velo_max_message_bytes, card.velo_payload_bytes);
  require_at_least("card.rma_max_message_bytes", card.rma_max_message_bytes, card.velo_max_message_bytes);
  require_at_most("card.rma_max_message_bytes", card.rma_max_message_bytes,
                  max_packets * card.rma_max_payload_bytes);
  require_at_most("card.rma_max_immediate_bytes", card.rma_max_immediate_bytes, card.rma_command_bytes,
                  ", the command that carries it");
}

CardTraits traits_of(const Description& card, const HostDescription& host) {
  if (host.bus.is_pcie()) {
    refuse_value("bus.pcie_generation", std::to_string(host.bus.pcie_generation),
                 "none with card.kind = \"extoll\", which foresees the times of bursts of equal overhead");
  }
  const auto padded = [&card](std::int64_t bytes) {
    return (bytes + card.granule_bytes - 1) / card.granule_bytes * card.granule_bytes;
  };
  const std::int64_t frame_bytes = card.header_bytes + card.footer_bytes;
  const std::int64_t put_bytes = padded(card.rma_header_bytes + card.rma_max_payload_bytes);
  const std::int64_t largest = std::max(
      {put_bytes, padded(card.rma_command_bytes), padded(card.velo_payload_bytes + card.velo_status_bytes)});
  return {.capabilities = {.put = true,
                           .get = true,
                           .get_notifications = true,
                           .locks = true,
                           .max_message_bytes = card.rma_max_message_bytes,
                           .max_send_bytes = card.rma_max_message_bytes,
                           .max_pio_bytes = card.velo_max_message_bytes,
                           .max_pio_put_bytes = card.rma_max_immediate_bytes,
                           .send_packet_bytes = card.velo_payload_bytes,
                           .mailbox_packets = card.velo_mailbox_entries,
                           .ordered_verbs = false},
          .network_channels = channels,
          .max_injection_fifos = channels,
          .injection_fifos_reason = ": VELO, requests of RMA and responses of RMA",
          .shares_channels_out = true,
          .queues_are = "its units",
          .max_packet_wire_bytes = frame_bytes + largest,
          .packet_overhead_bytes = frame_bytes + put_bytes - card.rma_max_payload_bytes,
          .max_processes = card.ports,
          .max_processes_key = "card.ports",
          .doorbell_delay = host.bus.pio_write_latency};
}

std::unique_ptr<CardSet> make_set(const Description& card, const CardSurroundings& surroundings) {
  return std::make_unique<Set>(card, surroundings);
}

}  // namespace apenet::extoll
