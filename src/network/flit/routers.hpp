// FlitRouters: the interface to all routers of the flit engine.
#pragma once

#include <memory>

#include "network/flit/fabric.hpp"
#include "network/flit/route_unit.hpp"

namespace apenet {

class FlitRouters {
 public:
  virtual ~FlitRouters() = default;
  // Runs one cycle of every router that is not quiescent.
  virtual void tick(FlitCycle cycle) = 0;
  // Every router is quiescent: no cycle changes its registers before a flit or a credit arrives.
  [[nodiscard]] virtual bool is_quiescent() const = 0;
};

// Throws std::invalid_argument for routers with more than 64 ports, 64 virtual channels per port or 512
// virtual channels in all.
[[nodiscard]] std::unique_ptr<FlitRouters> make_flit_routers(FlitFabric& fabric, const FlitRouteUnit& routes);

}  // namespace apenet
