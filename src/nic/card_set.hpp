// CardSet: all cards of a machine, and the traits about them that the wiring needs.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "host/bus.hpp"
#include "host/description.hpp"
#include "kernel/counters.hpp"
#include "kernel/simulation.hpp"
#include "network/description.hpp"
#include "network/network.hpp"
#include "nic/description.hpp"
#include "nic/engine_use.hpp"
#include "nic/messages.hpp"
#include "nic/nic.hpp"
#include "nic/placement.hpp"
#include "schema/listing.hpp"
#include "schema/values.hpp"

namespace apenet {

// The traits about a card that are needed before it is wired.
struct CardTraits {
  NicCapabilities capabilities;
  std::uint32_t network_channels = 1;
  // What limits router.injection_fifos, and why.
  std::int64_t max_injection_fifos = 1;
  const char* injection_fifos_reason = ", because this card has one";
  // Its network_channels are queues of the card, or belong to max_injection_fifos of its units: several FIFOs
  // share them out, by InjectionRule::queue. Otherwise every channel has several.
  bool shares_channels_out = false;
  const char* queues_are = "";
  std::int64_t max_packet_wire_bytes = 0;
  // Part of max_packet_wire_bytes: header and footer of a full packet.
  std::int64_t packet_overhead_bytes = 0;
  std::int64_t max_processes = std::numeric_limits<std::int64_t>::max();  // that can share a card
  const char* max_processes_key = "";                                     // the key that sets max_processes
  Time doorbell_delay;  // from a post to its first effect on the card
  // Its links lead only to neighbours in the torus or mesh; the nodes' software forwards messages to all
  // other nodes, hop by hop.
  bool forwards_by_software = false;
  // Why it cannot carry a message from its node to its node (SameNodeDescription::Way::card); nullptr: it
  // can.
  const char* no_loop_back = nullptr;
};

// The environment of a machine's cards. All of it outlives them.
struct CardSurroundings {
  Simulation& simulation;
  Network* network = nullptr;  // none where CardKind::has_network is false
  const NetworkDescription& wiring;
  std::uint32_t channels = 1;  // NetworkParameters::card_channels
  MessageTable& messages;
  const Placement& placement;
  const HostDescription& host;
  std::uint32_t nodes = 0;
  // For nodes with several cards.
  std::uint32_t first_source = 0;  // the number of the event sources of node 0's card and bus
  CardSet* at_bus_of = nullptr;    // the cards whose buses these share; nullptr: each has its own

  [[nodiscard]] EventSource source(NodeId node) const { return {EventKind::nic, first_source + node, 0}; }
};

class CardSet {
 public:
  virtual ~CardSet() = default;
  [[nodiscard]] virtual Nic& card(NodeId node) = 0;
  // nullptr: the card has none.
  [[nodiscard]] virtual Bus* bus(NodeId /*node*/) { return nullptr; }
  // The node's doorbell will ring soon: cards whose state does not fit the cache prefetch it here, as in
  // EventHandler::prepare().
  virtual void prepare(NodeId /*node*/, EventHandler::Ahead /*ahead*/) const {}
  // For a card whose library cuts sends into packets (NicCapabilities::send_packet_bytes): one message
  // between idle neighbours. packet_interval: see Descriptor.
  [[nodiscard]] virtual SendTimes send_times(std::int64_t /*bytes*/, Time /*packet_interval*/) const {
    return {};
  }
  // Call before the first post. For libraries that keep receive rings: gives every process the credit of
  // every other process's ring. Cards that need no credit do nothing.
  virtual void fill_receive_rings() {}
  // Lists the states and counters of all that messages from source to target use. Returns false if the cards
  // cannot: if the timing of a message depends on more than its descriptor and these states, such as on
  // addresses.
  [[nodiscard]] virtual bool list_state(NodeId /*source*/, NodeId /*target*/, StateList& /*list*/) {
    return false;
  }
  // Lists the engines of a node's card, always the same ones in the same order.
  virtual void list_engines(NodeId /*node*/, EngineList& /*engines*/) const {}
  // Appends the cards' counters in a fixed order.
  virtual void count(std::vector<Counter>& counters) const = 0;
  // Appends one sentence for each feature that was used and whose behaviour the model only assumes.
  virtual void warn(std::vector<std::string>& warnings) const = 0;
};

// The keys of [card], of every card that there is.
struct CardSection {
  CardKind kind;
  schema::Section section;
};
[[nodiscard]] std::vector<CardSection> card_sections();

// These and validate_card throw std::invalid_argument naming the key, the value and what was expected.
[[nodiscard]] NicDescription read_card(schema::Values& values);

[[nodiscard]] const CardKind& kind_of(const NicDescription& card);

// Adds what the description holds, by the keys of [card].
void read_base_units(const NicDescription& card, schema::BaseValues& values);

void validate_card(const NicDescription& card, const HostDescription& host);

[[nodiscard]] CardTraits card_traits(const NicDescription& card, const HostDescription& host);

// Creates a card for every node and attaches it to the network. Event sources: kind nic for the cards, kind
// host for the buses, see CardSurroundings.
[[nodiscard]] std::unique_ptr<CardSet> make_cards(const NicDescription& card,
                                                  const CardSurroundings& surroundings);

}  // namespace apenet
