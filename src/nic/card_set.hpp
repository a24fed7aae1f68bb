// CardSet: all cards of a machine, and what a card's kind tells those who wire it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "host/description.hpp"
#include "kernel/counters.hpp"
#include "kernel/simulation.hpp"
#include "network/description.hpp"
#include "network/network.hpp"
#include "nic/description.hpp"
#include "nic/messages.hpp"
#include "nic/nic.hpp"
#include "nic/placement.hpp"

namespace apenet {

// What must be known of a card before it is wired.
struct CardFacts {
  NicCapabilities capabilities;
  bool has_network = true;  // and a bus
  std::uint32_t network_channels = 1;
  std::int64_t max_packet_wire_bytes = 0;
  std::int64_t packet_overhead_bytes = 0;  // of them, header and footer of a full packet
  std::int64_t max_processes = std::numeric_limits<std::int64_t>::max();  // that can share a card ...
  const char* max_processes_key = "";                                     // ... and the key that says so
  Time doorbell_delay;  // from a post to its first effect on the card
};

// Where the cards of a machine live. Everything outlives them.
struct CardSurroundings {
  Simulation& simulation;
  Network* network = nullptr;  // none where CardFacts::has_network is false
  const NetworkDescription& wiring;
  MessageTable& messages;
  const Placement& placement;
  const HostDescription& host;
  std::uint32_t nodes = 0;
};

class CardSet {
 public:
  virtual ~CardSet() = default;
  [[nodiscard]] virtual Nic& card(NodeId node) = 0;
  // A doorbell will soon ring there: cards whose state does not fit the cache ask for it here, as
  // EventHandler::prepare does.
  virtual void prepare(NodeId /*node*/, EventHandler::Ahead /*ahead*/) const {}
  // Before the first post, for libraries that keep receive rings: every process has given every other credit
  // for a ring. Nothing to do for cards that need none.
  virtual void fill_receive_rings() {}
  // Appends what happened how often, in a fixed order.
  virtual void count(std::vector<Counter>& counters) const = 0;
  // Appends one sentence for each thing that was asked of the cards and that their model only assumes.
  virtual void warn(std::vector<std::string>& warnings) const = 0;
};

// Throws std::invalid_argument naming the key, the value and what was expected.
void validate_card(const NicDescription& card, const HostDescription& host);

[[nodiscard]] CardFacts card_facts(const NicDescription& card, const HostDescription& host);

// Makes a card for every node and attaches it to the network. Event sources: kind nic, id node; kind host,
// id node, for the bus.
[[nodiscard]] std::unique_ptr<CardSet> make_cards(const NicDescription& card,
                                                  const CardSurroundings& surroundings);

}  // namespace apenet
