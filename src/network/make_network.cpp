#include "network/make_network.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "kernel/refuse.hpp"
#include "network/faults/bit_errors.hpp"
#include "network/faults/faulty_network.hpp"
#include "network/flit/engine.hpp"
#include "network/packet/engine.hpp"
#include "network/routing/arrangement.hpp"
#include "network/routing/channel_classes.hpp"
#include "network/routing/injection_fifos.hpp"
#include "network/routing/resequencer.hpp"

namespace apenet {

namespace {

void require_rate(const std::string& key, const DataRate& rate) {
  if (rate.bytes > 0 && rate.per_cycles > 0 && rate.frequency_hz > 0) return;
  refuse_value(key,
               std::to_string(rate.bytes) + " bytes per " + std::to_string(rate.per_cycles) + " cycles of " +
                   std::to_string(rate.frequency_hz) + " Hz",
               "a positive rate");
}

void require_latency(const std::string& key, Time latency) {
  require_duration(key, latency);
}

void require_buffer(const std::string& key, std::int64_t bytes, std::uint32_t packet_bytes) {
  if (bytes < packet_bytes) {
    refuse_value(
        key, std::to_string(bytes),
        "room for the largest packet, " + std::to_string(packet_bytes) + " bytes with header and footer");
  }
}

void require_countable(const std::string& key, std::int64_t bytes) {
  if (bytes > std::numeric_limits<std::int32_t>::max())
    refuse_value(key, std::to_string(bytes), "less than 2 GiB");
}

std::string decimal(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

// Written so that it also rejects NaN.
void require_bit_error_rate(double rate, std::uint32_t packet_bytes) {
  const std::string key = "network.link.bit_error_rate";
  if (!(rate >= 0 && rate <= 1)) refuse_value(key, decimal(rate), "a probability, from 0 to 1");
  const double probability = corruption_probability(rate, packet_bytes);
  if (1 - probability < 1 / max_mean_transmissions) {
    refuse_value(key, decimal(rate),
                 "a rate at which packets pass: of the largest, " + std::to_string(packet_bytes) +
                     " bytes on the wire, a transmission is corrupted with probability " +
                     decimal(probability) + ", at most " + decimal(1 - 1 / max_mean_transmissions) +
                     " is simulated");
  }
}

// The escape of an adaptive routing works for headers at the front of a buffer. A packet that does not fit
// into one buffer leaves its header behind the tails of other packets, and such packets can wait for each
// other in a cycle (Duato, IEEE Trans. Parallel and Distributed Systems 4, 1993, assumes one packet per
// buffer).
void require_cut_through(const NetworkDescription& description) {
  if (description.routing == "minimal-adaptive" &&
      description.switching == NetworkDescription::Switching::wormhole) {
    refuse_value(
        "router.switching", "\"wormhole\"",
        "\"virtual-cut-through\" for network.routing = \"minimal-adaptive\" with the flit engine: blocked "
        "packets that do not fit into one buffer can wait for each other in a cycle");
  }
}

// A bubble is counted in slots of the largest packet, in which packets stand whole.
void require_bubbles(const NetworkParameters& parameters) {
  const NetworkDescription& description = parameters.description;
  if (description.switching == NetworkDescription::Switching::wormhole) {
    refuse_value("router.switching", "\"wormhole\"",
                 "\"virtual-cut-through\" for network.routing = \"" + description.routing +
                     "\": a bubble is free space for a whole packet");
  }
  std::int64_t slot_bytes = parameters.max_packet_wire_bytes;
  if (description.engine == NetworkDescription::Engine::flit) {
    const std::int64_t flit_bytes = flit_bytes_of(description);
    slot_bytes = (slot_bytes + flit_bytes - 1) / flit_bytes * flit_bytes;
  }
  if (description.buffer_bytes < 2 * slot_bytes) {
    refuse_value("router.buffer_bytes", std::to_string(description.buffer_bytes),
                 "room for two of the largest packets, " + std::to_string(2 * slot_bytes) +
                     " bytes, for network.routing = \"" + description.routing +
                     "\": a packet that enters a ring must leave a bubble");
  }
}

void validate(const NetworkParameters& parameters) {
  const NetworkDescription& description = parameters.description;
  for (std::size_t d = 0; d < description.links.size(); ++d) {
    const std::string key = "network.links[" + std::to_string(d) + "]";
    require_rate(key + ".rate", description.links[d].rate);
    require_latency(key + ".latency", description.links[d].latency);
    require_bit_error_rate(description.links[d].bit_error_rate, parameters.max_packet_wire_bytes);
  }
  require_rate("router.local_rate", description.local_rate);
  require_latency("router.port_latency", description.local_latency);
  require_latency("router.latency", description.router_latency);
  require_latency("router.credit_latency", description.credit_latency);
  require_latency("network.reconfiguration", description.reconfiguration);
  require_injection(description);
  if (parameters.card_channels == 0 || parameters.fifos_of_node() > 65535) {
    refuse_value("card_channels", std::to_string(parameters.card_channels),
                 "1 to " + std::to_string(65535 / description.injection_fifos));
  }
  if (parameters.max_packet_wire_bytes == 0)
    refuse_value("max_packet_wire_bytes", "0", "the size of the largest packet");
  const std::uint32_t packet_bytes = parameters.max_packet_wire_bytes;
  if (description.switching == NetworkDescription::Switching::virtual_cut_through) {
    require_buffer("router.buffer_bytes", description.buffer_bytes, packet_bytes);
  }
  require_countable("router.buffer_bytes", description.buffer_bytes);
  require_countable("router.injection_buffer_bytes", description.injection_buffer_bytes);
  require_countable("router.ejection_buffer_bytes", description.ejection_buffer_bytes);
  require_buffer("router.injection_buffer_bytes", description.injection_buffer_bytes, packet_bytes);
  require_buffer("router.ejection_buffer_bytes", description.ejection_buffer_bytes, packet_bytes);
}

void validate_channels(const NetworkParameters& parameters, const Topology& topology,
                       const Routing& routing) {
  const std::uint32_t channels = parameters.description.virtual_channels;
  if (channels < routing.class_count() || channels > ChannelClasses::max_channels) {
    refuse_value("router.virtual_channels", std::to_string(channels),
                 std::to_string(routing.class_count()) + " to " +
                     std::to_string(ChannelClasses::max_channels) + ", at least one for each of the " +
                     std::to_string(routing.class_count()) + " classes of the routing");
  }
  constexpr std::uint32_t max_inputs = 65535;  // virtual channels of all ports of a router
  if (std::uint64_t{topology.ports_per_router()} * channels > max_inputs) {
    refuse_value("router.virtual_channels", std::to_string(channels),
                 "at most " + std::to_string(max_inputs / topology.ports_per_router()) + " for routers of " +
                     std::to_string(topology.ports_per_router()) + " ports");
  }
  const std::uint64_t queues =
      std::uint64_t{topology.router_count()} * topology.ports_per_router() * channels +
      std::uint64_t{topology.endpoint_count()} * parameters.fifos_of_node();
  constexpr std::uint64_t max_queues = std::uint64_t{1}
                                       << PackedOrder::source_bits;  // each a source of events
  if (queues >= max_queues) {
    refuse_value("router.virtual_channels", std::to_string(channels),
                 "fewer than 2^25 buffers in the network, not " + std::to_string(queues));
  }
}

}  // namespace

std::unique_ptr<Network> make_network(Simulation& simulation, const NetworkParameters& parameters) {
  const Topology topology = make_topology(parameters.description);
  validate(parameters);
  std::unique_ptr<const Routing> routing = make_routing(parameters.description, topology);
  const std::uint32_t local_ports = parameters.description.local_ports();
  std::optional<Topology> wider;
  if (local_ports > 1) wider = with_local_ports(topology, local_ports);
  const Topology& wiring = wider ? *wider : topology;
  validate_channels(parameters, wiring, *routing);
  require_no_deadlock(parameters.description, topology, *routing);
  const NetworkDescription& description = parameters.description;
  const bool is_flit = description.engine == NetworkDescription::Engine::flit;
  if (is_flit) require_cut_through(description);
  if (routing->bubble_class() != Routing::no_class) require_bubbles(parameters);
  // Packets overtake each other even at the cards, whatever the class.
  const bool has_overtaking = description.virtual_channels > 1 &&
                              description.channel_selection == NetworkDescription::ChannelSelection::any;
  const bool keeps_order = routing->keeps_order() && !has_overtaking;
  std::unique_ptr<HaltingNetwork> engine;
  if (is_flit) {
    engine = std::make_unique<FlitEngine>(simulation, wiring, std::move(routing), parameters);
  } else {
    engine = std::make_unique<PacketEngine>(simulation, wiring, std::move(routing), parameters);
  }
  std::unique_ptr<Network> network;
  if (description.faults.empty()) {
    network = std::move(engine);
  } else {
    network = std::make_unique<FaultyNetwork>(simulation, topology, std::move(engine), description.faults,
                                              description.reconfiguration, parameters.rail);
  }
  if (keeps_order || !parameters.needs_order) return network;
  return std::make_unique<Resequencer>(simulation, std::move(network));
}

}  // namespace apenet
