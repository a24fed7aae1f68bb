#include "network/describe.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "kernel/refuse.hpp"
#include "schema/lowering.hpp"

namespace apenet {

namespace {

using Topology = NetworkDescription::Topology;
using Names = std::vector<std::string>;

const Names dimensions = {"x", "y", "z", "u", "v", "w"};
const Names levels = {"leaf", "middle"};

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
         "header arrival to header departure; with credit_cycles, or the stages' delays");
  fields("credit_cycles", router.credit_cycles, count_or_zero.or_another_key(),
         "tail leaves a buffer to credit usable upstream");
  fields("routing_delay_cycles", pipeline.routing_delay_cycles, count_or_zero.or_another_key(),
         "stage of route computation; 0: looked up one router ahead");
  fields("vc_allocation_delay_cycles", pipeline.vc_allocation_delay_cycles, count.or_another_key(),
         "stage of virtual-channel allocation");
  fields("switch_allocation_delay_cycles", pipeline.switch_allocation_delay_cycles, count.or_another_key(),
         "stage of switch allocation");
  fields("switch_traversal_delay_cycles", pipeline.switch_traversal_delay_cycles, count.or_another_key(),
         "stage of switch traversal");
  fields("credit_delay_cycles", pipeline.credit_delay_cycles, count_or_zero.or_another_key(),
         "credit's arrival at the upstream router to its use");
  fields("port_clock_mhz", network.local_rate.frequency_hz, positive, "clock of the ports towards cards");
  fields("port_word_bytes", network.local_rate.bytes, count, "what such a port moves in one clock");
  fields("port_latency_ns", network.local_latency, not_negative.optional(),
         "cable between card and router, where they are apart");
  fields("virtual_channels", network.virtual_channels, count, "of a link, dateline classes included");
  fields("buffer_bytes", network.buffer_bytes, count.or_another_key(), "per virtual channel and input port");
  fields("buffer_flits", router.buffer_flits, count.or_another_key(), "the same in flits");
  fields("injection_buffer_bytes", network.injection_buffer_bytes, count, "per channel of the card");
  fields("ejection_buffer_bytes", network.ejection_buffer_bytes, count, "per node");
  fields("flit_bytes", pipeline.flit_bytes, count.or_another_key(),
         "size of a flit; absent: what the first link moves at a time");
  fields("switching", network.switching, schema::Choice{"virtual-cut-through", "wormhole"}.optional(),
         "a blocked packet waits in one buffer, or spread over the routers behind its header");
  fields("channel_selection", network.channel_selection, schema::Choice{"lane", "any"}.optional(),
         "virtual channel of a packet within its class: that of the card's channel, or any free one");
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
  // The engine that counts from a tail's departure: back along the link, less the tail's way through the
  // switch.
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

// Of the tables below [network.link], those that this network has, in the order in which it numbers kinds of
// links.
Names link_tables(const NetworkDescription& network) {
  const auto first = [](const Names& names, std::size_t count) {
    return Names(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(count, names.size())));
  };
  switch (network.topology) {
    case Topology::none:
    case Topology::torus:
    case Topology::mesh:
      return first(dimensions, network.dims.size());
    case Topology::fat_tree:
      return first(levels, network.fat_tree.parents.size());
    case Topology::crossbar:
    case Topology::graph:
      break;
  }
  return {};
}

void read_links(schema::Values& values, NetworkDescription& network) {
  LinkDescription link;
  schema::lower(values, "network.link", link);
  const auto add = [&](const std::string& section) {
    network.links.push_back(link);
    schema::lower_differences(values, section, network.links.back());
  };
  for (const std::string& name : link_tables(network)) add("network.link." + name);
  if (network.topology != Topology::graph) return;
  network.links.push_back(link);
  network.link_names = values.tables_below("network.links");
  for (const std::string& name : network.link_names) add("network.links." + name);
}

}  // namespace

std::vector<TopologyKeys> topology_keys() {
  const Names general = {"table_file", "reconfiguration_us"};
  return {
      {"none", {}, {"dims", "routing", "link"}, {"dimension-order"}, dimensions},
      {"torus",
       {"dims", "routing", "link"},
       general,
       {"dimension-order", "dimension-order-entry-class", "minimal-adaptive", "up-down", "table"},
       dimensions},
      {"mesh",
       {"dims", "routing", "link"},
       general,
       {"dimension-order", "minimal-adaptive", "up-down", "table"},
       dimensions},
      {"fat-tree",
       {"children", "parents", "routing", "link"},
       {"cables", "table_file", "reconfiguration_us"},
       {"destination-mod", "up-down", "table"},
       levels},
      {"crossbar", {"nodes"}, {"routing", "table_file", "reconfiguration_us"}, {"up-down", "table"}, {}},
      {"graph",
       {"graph_file", "routing", "link"},
       {"links", "table_file", "reconfiguration_us"},
       {"up-down", "table"},
       {}},
  };
}

std::vector<schema::Section> network_sections() {
  return {schema::listed<NetworkDescription>("network"), schema::listed<LinkDescription>("network.link"),
          schema::listed<RouterKeys>("router")};
}

NetworkDescription read_network(schema::Values& values) {
  NetworkDescription network;
  schema::lower(values, "network", network);
  FatTreeDescription& tree = network.fat_tree;
  if (!values.has("network.cables")) tree.cables.assign(tree.parents.size(), 1);
  const bool is_crossbar = network.topology == Topology::crossbar;
  // On a crossbar every routing is the same.
  if (is_crossbar && !values.has("network.routing")) network.routing = NetworkDescription::Routing::up_down;
  if (values.has_section("network.link")) read_links(values, network);
  return values.has_section("router") ? read_router(values, std::move(network)) : network;
}

void read_base_units(const NetworkDescription& network, schema::BaseValues& values) {
  schema::read("network", network, values);
  for (std::size_t i = 0; i < network.links.size(); ++i) {
    schema::read("network.links[" + std::to_string(i) + ']', network.links[i], values);
  }
  RouterKeys router{.network = network};
  schema::read("router", router, values);
  for (const char* key : {"router.forward_cycles", "router.credit_cycles", "router.buffer_flits"}) {
    values.erase(key);
  }
  values["router.latency"] = network.router_latency.ps();
  values["router.credit_latency"] = network.credit_latency.ps();
}

}  // namespace apenet
