// FlitRouters: all routers of the flit engine, cycle by cycle.
#pragma once

#include <memory>

#include "network/flit/fabric.hpp"
#include "network/flit/route_unit.hpp"

namespace apenet {

class FlitRouters {
 public:
  virtual ~FlitRouters() = default;
  // One cycle of every router that is not at rest.
  virtual void tick(FlitCycle cycle) = 0;
  // Every router is at rest: whatever it holds waits for a flit or a credit from outside, and until then no
  // cycle would change anything.
  [[nodiscard]] virtual bool is_at_rest() const = 0;
};

// Throws std::invalid_argument for routers with more than 512 virtual channels, or 64 ports.
[[nodiscard]] std::unique_ptr<FlitRouters> make_flit_routers(FlitFabric& fabric, const FlitRouteUnit& routes);

}  // namespace apenet
