// Replaces one node's router, or every node's, by another implementation in lockstep with the engine's own:
// the results must not differ.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel/random.hpp"
#include "network/faults/faulty_network.hpp"
#include "network/flit/engine.hpp"
#include "network/reference_router.hpp"
#include "network/routing/routing.hpp"
#include "support/cases.hpp"

namespace apenet::testing {
namespace {

struct Seen {
  std::uint64_t message = 0;
  std::int64_t head_ps = 0;
  std::int64_t tail_ps = 0;
  std::uint16_t hops = 0;
  bool operator==(const Seen&) const = default;
};

class Sink final : public NetworkClient {
 public:
  void attach(Simulation& simulation, Network& network, NodeId node) {
    simulation_ = &simulation;
    network_ = &network;
    node_ = node;
    network.attach(node, *this);
  }
  void packet_arrived(const Packet& packet, Time head_time) override {
    seen.push_back({packet.message, head_time.ps(), simulation_->now().ps(), packet.hops});
    network_->consumed(node_, packet);
  }
  void injection_freed(std::uint16_t /*channel*/) override {}

  std::vector<Seen> seen;

 private:
  Simulation* simulation_ = nullptr;
  Network* network_ = nullptr;
  NodeId node_ = 0;
};

NetworkParameters drawn_network(RandomStream& random) {
  NetworkParameters parameters;
  NetworkDescription& description = parameters.description;
  description.engine = NetworkDescription::Engine::flit;
  description.topology = TorusDescription(
      {static_cast<std::uint32_t>(2 + random.below(3)), static_cast<std::uint32_t>(2 + random.below(3))});
  RouterPipeline& pipeline = description.pipeline;
  pipeline.clock_hz = 1'000'000'000;
  // In one of three cases all stages take one cycle.
  const std::uint64_t longest = random.below(3) == 0 ? 1 : 3;
  pipeline.routing_delay_cycles = static_cast<std::uint32_t>(random.below(1 + longest));
  pipeline.vc_allocation_delay_cycles = static_cast<std::uint32_t>(1 + random.below(longest));
  pipeline.switch_allocation_delay_cycles = static_cast<std::uint32_t>(1 + random.below(longest));
  pipeline.switch_traversal_delay_cycles = static_cast<std::uint32_t>(1 + random.below(longest));
  pipeline.credit_delay_cycles = static_cast<std::uint32_t>(random.below(4));
  for (std::size_t d = 0; d < 2; ++d) {
    const auto flit_cycles = static_cast<std::int64_t>(1 + random.below(2));
    description.links.push_back(
        {{8, flit_cycles, 1'000'000'000}, Time::from_ns(static_cast<std::int64_t>(random.below(4)))});
  }
  description.local_rate = {8, 1, 1'000'000'000};
  description.local_latency = Time::from_ns(static_cast<std::int64_t>(random.below(2)));
  description.router_latency = Time::from_ns(static_cast<std::int64_t>(4 * longest + random.below(4)));
  description.virtual_channels = static_cast<std::uint32_t>(2 + random.below(15));
  if (random.below(2) == 0) description.switching = NetworkDescription::Switching::wormhole;
  if (random.below(2) == 0) description.channel_selection = NetworkDescription::ChannelSelection::any;
  const bool is_wormhole = description.switching == NetworkDescription::Switching::wormhole;
  parameters.max_packet_wire_bytes = 80;
  description.buffer_bytes = static_cast<std::int64_t>((is_wormhole ? 8 : 80) + 8 * random.below(12));
  description.injection_buffer_bytes = 1 << 20;
  // Sinks always have room: a sink that admits several flits at once would return as many credits in that
  // cycle.
  description.ejection_buffer_bytes = 160 * std::int64_t{description.virtual_channels};
  parameters.card_channels = 3;
  return parameters;
}

enum class Replaced : std::uint8_t { none, one, all };

// Links that fail and recover while the packets travel.
std::vector<std::string> drawn_faults(const Topology& topology, RandomStream& random) {
  std::vector<std::string> faults;
  for (std::uint64_t count = 1 + random.below(3); count > 0; --count) {
    const PortRef port{static_cast<RouterId>(random.below(topology.router_count())),
                       static_cast<std::uint32_t>(random.below(4))};
    if (!topology.neighbour(port).is_connected()) continue;
    const std::uint64_t down_ns = random.below(300);
    faults.push_back("link " + topology.link_name(port) + " down @" + std::to_string(down_ns) + "ns up @" +
                     std::to_string(down_ns + 1 + random.below(300)) + "ns");
  }
  return faults;
}

std::vector<std::vector<Seen>> run(std::uint64_t seed, Replaced replaced, bool has_faults = false) {
  RandomStream random(seed, 0);
  NetworkParameters parameters = drawn_network(random);
  const CubeShape shape(parameters.description.topology.dims());
  const Topology topology = make_torus(shape);
  RandomStream random_faults(seed, 1);
  std::vector<std::string> faults;
  if (has_faults) {
    faults = drawn_faults(topology, random_faults);
    for (LinkDescription& link : parameters.description.links) link.bit_error_rate = 2e-4;
  }
  Simulation simulation(seed);
  auto owned = std::make_unique<FlitEngine>(simulation, topology,
                                            std::make_unique<DimensionOrderEntryRouting>(shape), parameters);
  FlitEngine& engine = *owned;
  const auto maker = [](const FlitRouterShape& router, const FlitRouteSource& routes) {
    return std::make_unique<ReferenceRouter>(router, routes);
  };
  const auto chosen = static_cast<RouterId>(random.below(shape.node_count()));
  for (RouterId router = 0; router < shape.node_count(); ++router) {
    if (replaced == Replaced::all || (replaced == Replaced::one && router == chosen)) {
      engine.plug(router, maker);
    }
  }
  std::unique_ptr<Network> network;
  if (faults.empty()) {
    network = std::move(owned);
  } else {
    const Time reconfiguration = Time::from_ns(static_cast<std::int64_t>(random_faults.below(60)));
    network = std::make_unique<FaultyNetwork>(simulation, topology, std::move(owned), faults, reconfiguration,
                                              parameters.rail);
  }
  network->begin(Time::zero());
  std::vector<Sink> sinks(shape.node_count());
  for (NodeId node = 0; node < shape.node_count(); ++node) sinks[node].attach(simulation, *network, node);
  for (std::uint32_t i = 0; i < 40 * shape.node_count(); ++i) {
    Packet packet;
    packet.source = static_cast<NodeId>(random.below(shape.node_count()));
    packet.destination = static_cast<NodeId>(random.below(shape.node_count()));
    packet.channel = static_cast<std::uint16_t>(random.below(3));
    packet.wire_bytes = static_cast<std::uint32_t>(1 + random.below(80));
    packet.message = i;
    network->inject(packet, simulation.now());
    if (random.below(4) != 0) continue;
    const Time horizon = simulation.now() + Time::from_ns(5);
    while (simulation.next_time() < horizon) simulation.step();
  }
  simulation.run();
  std::vector<std::vector<Seen>> result;
  std::size_t arrived = 0;
  for (const Sink& sink : sinks) {
    result.push_back(sink.seen);
    arrived += sink.seen.size();
  }
  EXPECT_EQ(arrived, 40 * shape.node_count());
  return result;
}

TEST(FlitLockstep, TheReferenceRouterAtOneNodeChangesNothing) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(40); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_EQ(run(seed, Replaced::none), run(seed, Replaced::one));
  }
}

TEST(FlitLockstep, ReferenceRoutersAtAllNodesChangeNothing) {
  for (std::uint64_t seed = 50; seed < 50 + test::drawn_cases(26); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_EQ(run(seed, Replaced::none), run(seed, Replaced::all));
  }
}

// Halts, other routes and links that repeat packets are outside the routers: both see the same of them.
TEST(FlitLockstep, ReferenceRoutersChangeNothingUnderFaults) {
  for (std::uint64_t seed = 100; seed < 100 + test::drawn_cases(20); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<std::vector<Seen>> own = run(seed, Replaced::none, true);
    ASSERT_EQ(own, run(seed, seed % 2 == 0 ? Replaced::one : Replaced::all, true));
    ASSERT_NE(own, run(seed, Replaced::none));
  }
}

}  // namespace
}  // namespace apenet::testing
