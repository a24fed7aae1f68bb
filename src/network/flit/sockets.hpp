// FlitSockets: connects routers of other implementations to the flit engine's wires.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "network/flit/route_unit.hpp"
#include "network/flit/router.hpp"

namespace apenet {

// The parameters of the router that an implementation replaces.
struct FlitRouterShape {
  FlitTiming timing;
  std::uint32_t ports = 0;
  std::uint32_t virtual_channels = 0;
  bool is_cut_through = false;
  std::vector<bool> is_local;                         // per port: it leads to a card
  std::vector<std::uint32_t> output_interval_cycles;  // per port: from one flit to the next
};

using FlitRouterMaker =
    std::function<std::unique_ptr<FlitRouter>(const FlitRouterShape& shape, const FlitRouteSource& routes)>;

// Carries flits and credits between the engine's wires and the ports of plugged-in routers. Each of these
// routers ticks in every cycle that the engine runs.
class FlitSockets {
 public:
  FlitSockets(FlitFabric& fabric, const FlitRouteUnit& routes) : fabric_(fabric), routes_(routes) {}

  // The caller must have set the wires that lead to this router to FlitPortKind::socket.
  void plug(RouterId router, const FlitRouterMaker& maker);
  void tick(FlitCycle cycle);
  // Replaces every router by a new instance.
  void reset();
  [[nodiscard]] bool is_quiescent() const;

 private:
  struct Socket final : FlitRouteSource {
    Socket(const FlitFabric& fabric_, const FlitRouteUnit& routes_, RouterId router_, FlitRouterShape shape_,
           FlitRouterMaker maker_)
        : fabric(fabric_),
          routes(routes_),
          router(router_),
          shape(std::move(shape_)),
          maker(std::move(maker_)),
          inputs(fabric_.ports),
          outputs(fabric_.ports) {}
    [[nodiscard]] Answer route(std::uint32_t input_port, std::uint32_t virtual_channel,
                               Flit head) const override;
    [[nodiscard]] std::uint32_t flits(Flit head) const override {
      return fabric.state.routes[head.packet()].flits;
    }

    const FlitFabric& fabric;
    const FlitRouteUnit& routes;
    RouterId router;
    FlitRouterShape shape;
    FlitRouterMaker maker;
    std::unique_ptr<FlitRouter> implementation;
    std::vector<FlitPortWires> inputs;
    std::vector<FlitPortWires> outputs;
  };

  [[nodiscard]] FlitPortWires& input(FlitPlace place);
  void send(Socket& socket);

  FlitFabric& fabric_;
  const FlitRouteUnit& routes_;
  std::vector<std::unique_ptr<Socket>> sockets_;
};

}  // namespace apenet
