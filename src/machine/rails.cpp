#include "machine/rails.hpp"

#include <utility>

#include "network/make_network.hpp"

namespace apenet {

std::uint8_t rail_count(const MachineDescription& machine) {
  return static_cast<std::uint8_t>(1 + machine.rails.size());
}

MachineDescription rail_alone(const MachineDescription& machine, std::uint8_t rail) {
  MachineDescription alone = machine;
  alone.rails.clear();
  if (rail == 0) return alone;
  const RailDescription& chosen = machine.rails[rail - 1U];
  alone.network = chosen.network;
  alone.nic = chosen.nic;
  alone.interrupts = chosen.interrupts;
  alone.same_node = chosen.same_node;
  if (!chosen.shares_slot) alone.host.bus = chosen.bus;
  alone.card_software = chosen.card_software;
  alone.mpi_software = chosen.mpi_software;
  alone.udp_software = chosen.udp_software;
  alone.ip_software = chosen.ip_software;
  return alone;
}

std::string rail_prefix(const MachineDescription& machine, std::uint8_t rail) {
  return rail == 0 ? std::string() : machine.rails[rail - 1U].name + ": ";
}

std::string rail_key(const MachineDescription& machine, std::uint8_t rail) {
  return "rail." + machine.rails[rail - 1U].name;
}

std::uint32_t channels_of_fifo(const CardTraits& card, const NetworkDescription& network) {
  return card.shares_channels_out ? card.network_channels / network.injection_fifos : card.network_channels;
}

Rail::Rail(std::uint8_t number, MachineDescription alone, const Shared& shared)
    : description(std::move(alone)),
      placement(shared.placement),
      traits(card_traits(description.nic, description.host)),
      queues(description.network.topology, traits.capabilities.peer_queues) {
  if (kind_of(description.nic).has_network) {
    network = make_network(shared.simulation,
                           {.description = description.network,
                            .card_channels = channels_of_fifo(traits, description.network),
                            .max_packet_wire_bytes = static_cast<std::uint32_t>(traits.max_packet_wire_bytes),
                            .rail = number});
  }
  cards = make_cards(description.nic, {.simulation = shared.simulation,
                                       .network = network.get(),
                                       .wiring = description.network,
                                       .channels = channels_of_fifo(traits, description.network),
                                       .messages = shared.messages,
                                       .placement = shared.placement,
                                       .host = description.host,
                                       .nodes = shared.nodes,
                                       .first_source = number * shared.nodes,
                                       .at_bus_of = shared.at_bus_of});
  if (!description.interrupts.is_on()) return;
  interrupts =
      std::make_unique<Interrupts>(shared.simulation, shared.messages, shared.placement,
                                   description.interrupts, description.same_node, shared.first_vector);
  shared.messages.set_interrupts(number, *interrupts);
}

}  // namespace apenet
