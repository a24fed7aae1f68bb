// Both engines ask some routings by a path of their own, without a virtual call or from tables. The same
// packets arrive at the same times as when they ask as they ask any other routing.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "contract/traffic.hpp"
#include "kernel/random.hpp"
#include "network/flit/engine.hpp"
#include "network/packet/engine.hpp"
#include "network/routing/arrangement.hpp"
#include "network/routing/routing.hpp"
#include "network/topology/cube.hpp"

namespace apenet::testing {
namespace {

// Answers as another routing does; no engine can see which.
class Disguised final : public Routing {
 public:
  explicit Disguised(std::unique_ptr<const Routing> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::uint32_t class_count() const override { return inner_->class_count(); }
  void route(const RouteQuery& query, RouteSteps& steps) const override { inner_->route(query, steps); }
  [[nodiscard]] bool keeps_order() const override { return inner_->keeps_order(); }
  [[nodiscard]] bool is_memoryless() const override { return inner_->is_memoryless(); }
  [[nodiscard]] std::uint32_t waypoint_count() const override { return inner_->waypoint_count(); }

 private:
  std::unique_ptr<const Routing> inner_;
};

using Arrived =
    std::vector<std::tuple<std::uint64_t, std::int64_t, std::int64_t>>;  // message, head, tail [ps]

template <typename Engine>
Arrived run(const NetworkParameters& parameters, bool is_disguised, std::uint64_t seed) {
  const Topology topology = make_topology(parameters.description);
  Traffic traffic(
      [&](Simulation& simulation) {
        std::unique_ptr<const Routing> routing = make_routing(parameters.description, topology);
        if (is_disguised) routing = std::make_unique<Disguised>(std::move(routing));
        return std::make_unique<Engine>(simulation, topology, std::move(routing), parameters);
      },
      parameters.card_channels, Time::from_ns(30));
  RandomStream random(seed, 1);
  offer_random(traffic, parameters, random, 600);
  traffic.run();
  Arrived arrived;
  for (NodeId node = 0; node < traffic.network().node_count(); ++node) {
    for (const Arrival& arrival : traffic.node(node).arrivals())
      arrived.emplace_back(arrival.packet.message, arrival.head_time.ps(), arrival.tail_time.ps());
  }
  return arrived;
}

template <typename Engine>
void compare(NetworkParameters parameters, const char* routing) {
  parameters.description.routing = routing;
  parameters.description.virtual_channels = 4;
  parameters.card_channels = 2;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Arrived asked_directly = run<Engine>(parameters, false, seed);
    EXPECT_EQ(asked_directly.size(), 600U);
    EXPECT_EQ(asked_directly, run<Engine>(parameters, true, seed)) << routing << ", seed " << seed;
  }
}

TEST(RoutingFastPath, ThePacketEngineAsksDimensionOrderWithoutAVirtualCall) {
  compare<PacketEngine>(small_network(TorusDescription({4, 3, 2}), 256), "dimension-order");
  compare<PacketEngine>(small_network(MeshDescription({5, 2, 3}), 256), "dimension-order");
}

TEST(RoutingFastPath, TheFlitEngineHasTheEntryClassesInTables) {
  NetworkParameters parameters = small_network(TorusDescription({4, 3, 2}), 64);
  NetworkDescription& description = parameters.description;
  description.engine = NetworkDescription::Engine::flit;
  description.channel_selection = NetworkDescription::ChannelSelection::any;
  description.pipeline.clock_hz = 1'000'000'000;
  description.pipeline.flit_bytes = 16;
  for (LinkDescription& link : description.links) link.rate = {16, 1, description.pipeline.clock_hz};
  description.local_rate = {16, 1, description.pipeline.clock_hz};
  description.router_latency = Time::from_ns(8);
  compare<FlitEngine>(parameters, "dimension-order-entry-class");
}

}  // namespace
}  // namespace apenet::testing
