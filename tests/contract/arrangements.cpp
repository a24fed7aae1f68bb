#include "contract/arrangements.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "contract/traffic.hpp"
#include "network/routing/arrangement.hpp"
#include "network/topology/crossbar.hpp"
#include "network/topology/cube.hpp"
#include "network/topology/fat_tree.hpp"
#include "network/topology/graph.hpp"
#include "network/topology/twisted_torus.hpp"

namespace apenet::testing {

namespace {

std::uint32_t between(RandomStream& random, std::uint32_t least, std::uint32_t most) {
  return least + static_cast<std::uint32_t>(random.below(most - least + 1));
}

void make_cube(NetworkDescription& description, RandomStream& random, bool is_torus) {
  std::vector<std::uint32_t> dims;
  std::uint32_t nodes = 1;
  for (std::uint32_t d = between(random, 1, CubeShape::max_dimensions); d > 0; --d) {
    dims.push_back(between(random, 1, std::max(1U, std::min(7U, 72 / nodes))));
    nodes *= dims.back();
  }
  description.links.resize(dims.size());
  if (is_torus) {
    description.topology = TorusDescription(dims);
  } else {
    description.topology = MeshDescription(dims);
  }
}

void make_cube(NetworkDescription& description, RandomStream& random) {
  make_cube(description, random, random.below(3) != 0);
}

void make_twisted_torus(NetworkDescription& description, RandomStream& random) {
  const std::uint32_t size = between(random, 2, 5);
  std::vector<std::uint32_t> dims = {size, 2 * size};
  for (std::uint32_t nodes = 2 * size * size; nodes * size <= 72 && random.below(3) != 0;
       nodes *= dims.back())
    dims.push_back(nodes * 2 * size <= 72 && random.below(2) == 0 ? 2 * size : size);
  if (random.below(2) == 0) std::reverse(dims.begin(), dims.end());
  description.links.resize(dims.size());
  description.topology = TwistedTorusDescription(dims);
}

void make_fat_tree(NetworkDescription& description, RandomStream& random) {
  FatTreeDescription tree;
  tree.children = {between(random, 1, 6), between(random, 1, 5)};
  if (random.below(2) == 0) tree.children.push_back(between(random, 1, 3));
  for (std::size_t level = 1; level < tree.children.size(); ++level) {
    tree.parents.push_back(between(random, 1, 4));
    tree.cables.push_back(between(random, 1, 3));
  }
  description.links.resize(tree.parents.size());
  description.topology = std::move(tree);
}

// Dimension order in the form of a routing table.
std::string dimension_order_text(const NetworkDescription& description) {
  const Topology topology = make_topology(description);
  const DimensionOrderRouting routing(description.topology);
  std::string text;
  for (RouterId router = 0; router < topology.router_count(); ++router) {
    for (NodeId node = 0; node < topology.endpoint_count(); ++node) {
      if (node == router) continue;
      const RouteStep step = routing.step(router, node);
      text += topology.router_name(router) + " " + std::to_string(node) + " " +
              topology.port_names()[step.port] + " " + std::to_string(step.channel_class) + "\n";
    }
  }
  return text;
}

void arrange(NetworkDescription& description, Arrangement arrangement, RandomStream& random) {
  switch (arrangement) {
    case Arrangement::cube_dimension_order:
      return make_cube(description, random);
    case Arrangement::cube_up_down:
      make_cube(description, random);
      description.routing = "up-down";
      return;
    case Arrangement::cube_table:
      make_cube(description, random);
      description.table = dimension_order_text(description);
      description.routing = "table";
      return;
    case Arrangement::cube_adaptive:
      make_cube(description, random);
      description.routing = "minimal-adaptive";
      return;
    case Arrangement::cube_valiant:
      make_cube(description, random);
      description.routing = "valiant";
      return;
    case Arrangement::twisted_dimension_order:
      return make_twisted_torus(description, random);
    case Arrangement::twisted_bubble:
      make_twisted_torus(description, random);
      description.routing = "dimension-order-bubble";
      return;
    case Arrangement::torus_bubble:
      make_cube(description, random, true);
      description.routing = "dimension-order-bubble";
      return;
    case Arrangement::torus_adaptive_bubble:
      make_cube(description, random, true);
      description.routing = "minimal-adaptive-bubble";
      return;
    case Arrangement::fat_tree_destination_mod:
      make_fat_tree(description, random);
      description.routing = "destination-mod";
      return;
    case Arrangement::fat_tree_random_up:
      make_fat_tree(description, random);
      description.routing = "random-up";
      return;
    case Arrangement::fat_tree_up_down:
      make_fat_tree(description, random);
      description.routing = "up-down";
      return;
    case Arrangement::crossbar:
      description.topology = CrossbarDescription{between(random, 1, 60)};
      description.routing = "up-down";
      return;
    case Arrangement::graph_up_down:
      description.topology = GraphDescription{random_graph_text(random), {"other"}};
      description.links.resize(2);
      description.routing = "up-down";
      return;
  }
}

void draw_times(NetworkDescription& description, RandomStream& random) {
  for (LinkDescription& link : description.links) {
    link.rate = {16, 3, between(random, 50'000'000, 250'000'000)};
    link.latency = Time::from_ps(between(random, 0, 50'000));
  }
  description.local_rate =
      DataRate::bytes_per_second(static_cast<std::int64_t>(between(random, 1, 4)) << 29U);
  description.local_latency = Time::from_ps(random.below(2) == 0 ? 0 : between(random, 0, 50'000));
  description.router_latency = Time::from_ps(between(random, 0, 80'000));
  description.credit_latency = Time::from_ps(between(random, 0, 50'000));
}

void draw_cycles(NetworkDescription& description, RandomStream& random) {
  constexpr std::int64_t clock_hz = 1'000'000'000;
  description.pipeline.clock_hz = clock_hz;
  description.pipeline.flit_bytes = 16;
  for (LinkDescription& link : description.links) {
    link.rate = {16, between(random, 1, 4), clock_hz};
    link.latency = Time::from_ns(between(random, 1, 30));
  }
  description.local_rate = {16, between(random, 1, 3), clock_hz};
  description.local_latency = Time::from_ns(random.below(2) == 0 ? 0 : between(random, 0, 20));
  description.pipeline.routing_delay_cycles = between(random, 0, 2);
  description.pipeline.vc_allocation_delay_cycles = between(random, 1, 3);
  description.router_latency = Time::from_ns(between(random, 7, 30));
  description.credit_latency = Time::from_ns(between(random, 30, 60));
}

}  // namespace

std::string name_of(Arrangement arrangement) {
  switch (arrangement) {
    case Arrangement::cube_dimension_order:
      return "cube_dimension_order";
    case Arrangement::cube_up_down:
      return "cube_up_down";
    case Arrangement::cube_table:
      return "cube_table";
    case Arrangement::cube_adaptive:
      return "cube_adaptive";
    case Arrangement::cube_valiant:
      return "cube_valiant";
    case Arrangement::twisted_dimension_order:
      return "twisted_dimension_order";
    case Arrangement::twisted_bubble:
      return "twisted_bubble";
    case Arrangement::torus_bubble:
      return "torus_bubble";
    case Arrangement::torus_adaptive_bubble:
      return "torus_adaptive_bubble";
    case Arrangement::fat_tree_destination_mod:
      return "fat_tree_destination_mod";
    case Arrangement::fat_tree_random_up:
      return "fat_tree_random_up";
    case Arrangement::fat_tree_up_down:
      return "fat_tree_up_down";
    case Arrangement::crossbar:
      return "crossbar";
    case Arrangement::graph_up_down:
      return "graph_up_down";
  }
  return "unnamed";
}

NetworkParameters random_network(NetworkDescription::Engine engine, Arrangement arrangement,
                                 RandomStream& random) {
  const std::uint32_t max_bytes = 16 * between(random, 1, 38);
  NetworkParameters parameters = small_network({}, max_bytes);
  NetworkDescription& description = parameters.description;
  description.engine = engine;
  arrange(description, arrangement, random);
  if (engine == NetworkDescription::Engine::flit) {
    draw_cycles(description, random);
  } else {
    draw_times(description, random);
  }
  const Topology topology = make_topology(description);
  const std::uint32_t classes = make_routing(description, topology)->class_count();
  description.virtual_channels = between(random, classes, 3 * classes);
  description.buffer_bytes =
      least_buffer_bytes(description, max_bytes) + static_cast<std::int64_t>(random.below(2UL * max_bytes));
  parameters.card_channels = between(random, 1, 5);
  if (random.below(3) == 0) description.arbitration = NetworkDescription::Arbitration::age;
  return parameters;
}

std::int64_t least_buffer_bytes(const NetworkDescription& description, std::uint32_t max_packet_wire_bytes) {
  const auto routing = make_routing(description, make_topology(description));
  return std::int64_t{max_packet_wire_bytes} * (routing->bubble_class() == Routing::no_class ? 1 : 2);
}

void draw_pipeline(NetworkParameters& parameters, RandomStream& random) {
  NetworkDescription& description = parameters.description;
  const std::int64_t clock_hz = description.pipeline.clock_hz;
  const std::uint32_t flit_bytes = description.pipeline.flit_bytes;
  RouterPipeline& pipeline = description.pipeline;
  pipeline.routing_delay_cycles = between(random, 0, 2);
  pipeline.vc_allocation_delay_cycles = between(random, 1, 3);
  pipeline.switch_allocation_delay_cycles = between(random, 1, 3);
  pipeline.switch_traversal_delay_cycles = between(random, 1, 3);
  pipeline.credit_delay_cycles = between(random, 0, 3);
  description.router_latency = Time::from_ns(between(random, 11, 15));
  for (LinkDescription& link : description.links) {
    link.rate = {flit_bytes, between(random, 1, 3), clock_hz};
    link.latency = Time::from_ns(between(random, 0, 4));
  }
  description.local_rate = {flit_bytes, between(random, 1, 2), clock_hz};
  description.local_latency = Time::from_ns(between(random, 0, 2));
  const std::uint32_t packet_flits = between(random, 1, 12);
  parameters.max_packet_wire_bytes = packet_flits * flit_bytes;
  const bool is_wormhole =
      // These combinations are refused.
      random.below(4) != 0 && description.routing != "minimal-adaptive" &&
      description.routing.find("bubble") == std::string::npos;
  description.switching = is_wormhole ? NetworkDescription::Switching::wormhole
                                      : NetworkDescription::Switching::virtual_cut_through;
  const auto least_flits = static_cast<std::uint32_t>(
      is_wormhole ? 1 : least_buffer_bytes(description, parameters.max_packet_wire_bytes) / flit_bytes);
  description.buffer_bytes = std::int64_t{between(random, least_flits, least_flits + 8)} * flit_bytes;
  description.injection_buffer_bytes = 2L * parameters.max_packet_wire_bytes;
  description.ejection_buffer_bytes = between(random, 1, 4) * std::int64_t{parameters.max_packet_wire_bytes};
  if (random.below(2) == 0) description.channel_selection = NetworkDescription::ChannelSelection::any;
}

// A random tree with some additional cables, and one to three nodes at most routers.
std::string random_graph_text(RandomStream& random) {
  const std::uint32_t routers = between(random, 1, 24);
  std::vector<std::uint32_t> ports(routers);
  std::string cables;
  const auto end = [&](std::uint32_t router) {
    return "r" + std::to_string(router) + ":" + std::to_string(ports[router]++);
  };
  const auto connect = [&](std::uint32_t one, std::uint32_t other) {
    const std::string first = end(one);
    cables += "cable " + first + " " + end(other) + (random.below(3) == 0 ? " other\n" : "\n");
  };
  for (std::uint32_t router = 1; router < routers; ++router) connect(router, between(random, 0, router - 1));
  for (std::uint64_t extra = routers > 1 ? random.below(2UL * routers) : 0; extra > 0; --extra) {
    const std::uint32_t one = between(random, 0, routers - 1);
    connect(one, (one + between(random, 1, routers - 1)) % routers);
  }
  std::string nodes;
  for (std::uint32_t router = 0; router < routers; ++router) {
    for (std::uint32_t i = between(random, router == 0 ? 1 : 0, 3); i > 0; --i)
      nodes += "node " + end(router) + "\n";
  }
  std::string text;
  for (std::uint32_t router = 0; router < routers; ++router)
    text += "router r" + std::to_string(router) + " " + std::to_string(ports[router]) + "\n";
  return text + cables + nodes;
}

}  // namespace apenet::testing
