#include "network/describe.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "kernel/refuse.hpp"
#include "network/routing/arrangement.hpp"
#include "schema/lowering.hpp"

namespace apenet {

namespace {

// The keys of [network]: its topology, those of the topology, the others.
void list_topology(schema::Fields& fields, std::string& name) {
  std::vector<std::string_view> names;
  for (const TopologyDescription& topology : registered_topologies()) names.push_back(topology.kind().name);
  fields("topology", name, schema::Choice(std::move(names)), "shape of the network");
}

void list_others(schema::Fields& fields, NetworkDescription& network) {
  using namespace schema::ranges;
  fields("routing", network.routing, schema::Choice(routing_names()).optional(),
         "how packets find their way");
  fields("table_file", network.table, text_of_file.optional(), "file with the routes of routing = \"table\"");
  fields("reconfiguration_us", network.reconfiguration, not_negative.optional(),
         "from a fault until the network runs with routes around it");
}

// The keys of [router]. Latency is given as a whole or by the stages of the pipeline, buffers in bytes or
// flits.
struct RouterKeys {
  NetworkDescription network;
  std::int64_t forward_cycles = 0;
  std::int64_t credit_cycles = 0;
  std::int64_t buffer_flits = 0;
};

void list_fields(schema::Fields& fields, RouterKeys& router) {
  using namespace schema::ranges;
  NetworkDescription& network = router.network;
  RouterPipeline& pipeline = network.pipeline;
  fields("clock_mhz", pipeline.clock_hz, positive, "clock of the router");
  fields("forward_cycles", router.forward_cycles, count_or_zero.or_another_key(),
         "from a header's arrival to its departure; with credit_cycles, or the stages' delays");
  fields("credit_cycles", router.credit_cycles, count_or_zero.or_another_key(),
         "from the time at which a tail leaves a buffer until its credit is usable upstream");
  fields("routing_delay_cycles", pipeline.routing_delay_cycles, count_or_zero.or_another_key(),
         "stage of route computation; 0: looked up one router ahead");
  fields("vc_allocation_delay_cycles", pipeline.vc_allocation_delay_cycles, count.or_another_key(),
         "stage of virtual-channel allocation");
  fields("switch_allocation_delay_cycles", pipeline.switch_allocation_delay_cycles, count.or_another_key(),
         "stage of switch allocation");
  fields("switch_traversal_delay_cycles", pipeline.switch_traversal_delay_cycles, count.or_another_key(),
         "stage of switch traversal");
  fields("credit_delay_cycles", pipeline.credit_delay_cycles, count_or_zero.or_another_key(),
         "from a credit's arrival at the upstream router to its use");
  fields("port_clock_mhz", network.local_rate.frequency_hz, positive, "clock of the ports towards cards");
  fields("port_word_bytes", network.local_rate.bytes, count, "bytes that such a port moves in one clock");
  fields("port_latency_ns", network.local_latency, not_negative.optional(),
         "latency of the cable between card and router, where they are apart");
  fields("virtual_channels", network.virtual_channels, count,
         "virtual channels of a link, dateline classes included");
  fields("buffer_bytes", network.buffer_bytes, count.or_another_key(),
         "buffer of a virtual channel of an input port");
  fields("buffer_flits", router.buffer_flits, count.or_another_key(), "the same in flits");
  fields("injection_buffer_bytes", network.injection_buffer_bytes, count,
         "buffer of an injection FIFO, for each channel of the card");
  fields("ejection_buffer_bytes", network.ejection_buffer_bytes, count, "buffer of an ejection port");
  fields("injection_fifos", network.injection_fifos, count.optional(),
         "injection FIFOs of a node, for each channel of the card; each has a port of the router");
  fields("injection_rule", network.injection_rule,
         schema::Choice{"direction", "destination", "queue", "least-loaded"}.optional(),
         "which of several injection FIFOs a packet takes: by its first link, its destination, its queue of "
         "the card, or the one with the fewest bytes");
  fields("ejection_ports", network.ejection_ports, count.optional(),
         "ejection ports of a node; a packet takes the one of the link by which it comes");
  fields("flit_bytes", pipeline.flit_bytes, count.or_another_key(),
         "size of a flit; absent: what the first link moves at a time");
  fields("switching", network.switching, schema::Choice{"virtual-cut-through", "wormhole"}.optional(),
         "whether a blocked packet waits in one buffer, or spread over the routers behind its header");
  fields("channel_selection", network.channel_selection, schema::Choice{"lane", "any"}.optional(),
         "virtual channel of a packet within its class: that of the card's channel, or any free one");
  fields("arbitration", network.arbitration, schema::Choice{"round-robin", "age"}.optional(),
         "which of several packets goes first: round robin, or the one that its card injected first");
}

// Rounded up, like ClockDomain::cycles, and beyond what it can: a negative number of cycles, and an error.
Time cycles(const char* key, std::int64_t count, std::int64_t clock_hz) {
  constexpr std::int64_t most_seconds = 1000;
  if (count > most_seconds * clock_hz) {
    refuse_value(key, std::to_string(count), "at most 1000 seconds of its clock");
  }
  if (count >= 0) return ClockDomain{clock_hz}.cycles(count);
  __extension__ using Wide = __int128;
  const Wide down = static_cast<Wide>(-count) * ps_per_second / clock_hz;
  return Time::from_ps(-static_cast<std::int64_t>(std::min<Wide>(down, Time::never().ps() / 2)));
}

void read_latencies(const schema::Values& values, RouterKeys& router) {
  NetworkDescription& network = router.network;
  RouterPipeline& pipeline = network.pipeline;
  if (values.has("router.forward_cycles")) {
    // The stages of one cycle each that the flit engine has, as far as they fit; the rest is buffer write.
    constexpr std::int64_t allocation_and_switch = 3;
    pipeline.routing_delay_cycles = router.forward_cycles > allocation_and_switch ? 1 : 0;
    network.router_latency = cycles("router.forward_cycles", router.forward_cycles, pipeline.clock_hz);
    network.credit_latency = cycles("router.credit_cycles", router.credit_cycles, pipeline.clock_hz);
    return;
  }
  const std::int64_t stages = std::int64_t{pipeline.routing_delay_cycles} +
                              pipeline.vc_allocation_delay_cycles + pipeline.switch_allocation_delay_cycles +
                              pipeline.switch_traversal_delay_cycles;
  network.router_latency = cycles("router.routing_delay_cycles", stages, pipeline.clock_hz);
  // credit_latency counts from the departure of the tail. The credit has set out one switch traversal before;
  // it crosses the link and waits for credit_delay_cycles.
  Time wire = network.links.empty() ? Time::zero() : network.links.front().latency;
  for (const LinkDescription& link : network.links) wire = std::min(wire, link.latency);
  const std::int64_t credit =
      std::int64_t{pipeline.credit_delay_cycles} - pipeline.switch_traversal_delay_cycles;
  network.credit_latency =
      std::max(Time::zero(), wire + cycles("router.credit_delay_cycles", credit, pipeline.clock_hz));
}

NetworkDescription read_router(schema::Values& values, NetworkDescription network) {
  RouterKeys router{.network = std::move(network)};
  schema::lower(values, "router", router);
  read_latencies(values, router);
  if (values.has("router.buffer_flits")) {
    const std::int64_t word = router.network.links.empty() ? router.network.local_rate.bytes
                                                           : router.network.links.front().rate.bytes;
    const std::uint32_t flit = router.network.pipeline.flit_bytes;
    router.network.buffer_bytes = router.buffer_flits * (flit > 0 ? flit : word);
  }
  return std::move(router.network);
}

void read_links(schema::Values& values, NetworkDescription& network) {
  LinkDescription link;
  schema::lower(values, "network.link", link);
  for (const std::string& section : network.topology.link_classes()) {
    network.links.push_back(link);
    schema::lower_differences(values, section, network.links.back());
  }
}

// The keys that a topology alone has.
schema::Section own_keys(const TopologyDescription& topology) {
  schema::Listing listing("network");
  std::ignore = topology.listed(listing);
  return std::move(listing.listed);
}

// A key of [network] may belong to some topologies only, so that none but the topology is always there.
schema::Section network_section() {
  schema::Listing listing("network");
  std::string name(registered_topologies().front().kind().name);
  list_topology(listing, name);
  std::vector<schema::ListedField>& fields = listing.listed.fields;
  for (const TopologyDescription& topology : registered_topologies()) {
    for (schema::ListedField& field : own_keys(topology).fields) {
      const auto is_same = [&](const schema::ListedField& other) { return other.key == field.key; };
      if (std::any_of(fields.begin(), fields.end(), is_same)) continue;
      field.is_optional = true;
      fields.push_back(std::move(field));
    }
  }
  NetworkDescription network;
  list_others(listing, network);
  return std::move(listing.listed);
}

TopologyKeys keys_of(const TopologyDescription& topology) {
  const TopologyKind kind = topology.kind();
  TopologyKeys keys{.name = std::string(kind.name),
                    .routings = routings_of(kind),
                    .links = kind.link_tables,
                    .has_routers = kind.has_routers,
                    .is_grid = kind.is_grid,
                    .wraps = kind.wraps};
  const schema::Section own = own_keys(topology);
  for (const schema::ListedField& field : own.fields)
    (field.is_optional ? keys.allows : keys.needs).push_back(field.key);
  for (const auto& [table, fields] : own.tables) keys.allows.push_back(table);
  // Without links between routers, every routing is the same.
  std::vector<std::string>& wiring = kind.has_routers && kind.has_links ? keys.needs : keys.allows;
  wiring.emplace_back("routing");
  if (kind.has_links) wiring.emplace_back("link");
  if (kind.has_routers) keys.allows.insert(keys.allows.end(), {"table_file", "reconfiguration_us"});
  return keys;
}

}  // namespace

std::vector<TopologyKeys> topology_keys() {
  std::vector<TopologyKeys> keys;
  for (const TopologyDescription& topology : registered_topologies()) keys.push_back(keys_of(topology));
  return keys;
}

std::vector<schema::Section> network_sections() {
  return {network_section(), schema::listed<LinkDescription>("network.link"),
          schema::listed<RouterKeys>("router")};
}

NetworkDescription read_network(schema::Values& values) {
  NetworkDescription network;
  schema::Lowering lowering(values, "network", false);
  std::string name(network.topology.kind().name);
  list_topology(lowering, name);
  for (const TopologyDescription& topology : registered_topologies()) {
    if (topology.kind().name == name) network.topology = topology.listed(lowering);
  }
  if (!network.topology.kind().has_links) network.routing = "up-down";
  list_others(lowering, network);
  if (values.has_section("network.link")) read_links(values, network);
  return values.has_section("router") ? read_router(values, std::move(network)) : network;
}

void read_base_units(const NetworkDescription& network, schema::BaseValues& values) {
  schema::Reading reading("network", values);
  std::string name(network.topology.kind().name);
  list_topology(reading, name);
  for (const TopologyDescription& topology : registered_topologies()) std::ignore = topology.listed(reading);
  std::ignore = network.topology.listed(reading);
  RouterKeys router{.network = network};
  list_others(reading, router.network);
  for (std::size_t i = 0; i < network.links.size(); ++i) {
    schema::read("network.links[" + std::to_string(i) + ']', network.links[i], values);
  }
  schema::read("router", router, values);
  for (const char* key : {"router.forward_cycles", "router.credit_cycles", "router.buffer_flits"}) {
    values.erase(key);
  }
  values["router.latency"] = network.router_latency.ps();
  values["router.credit_latency"] = network.credit_latency.ps();
}

}  // namespace apenet
