// FlitRouter: the interface of one router, for implementations other than the engine's own.
#pragma once

#include <cstdint>
#include <vector>

#include "network/flit/fabric.hpp"

namespace apenet {

// The values on the wires of one port in one cycle. An input port reads a flit and writes a credit for its
// own buffers. The output port of the same number writes a flit and reads a credit.
struct FlitOnWire {
  bool is_valid = false;
  std::uint16_t virtual_channel = 0;
  Flit flit;
};
struct CreditOnWire {
  bool is_valid = false;
  std::uint16_t virtual_channel = 0;
};
struct FlitPortWires {
  FlitOnWire flit;
  CreditOnWire credit;
};

// A router as hardware has it: state and ports, nothing else. docs/models/flit-engine.md specifies it
// register by register. The engine keeps its own routers in arrays. An instance of this interface can replace
// any of them: it runs in lockstep with the others, and the results do not change.
//
// A Moore machine: tick() reads what arrives at the ports in this cycle and writes what the wires carry in
// the next one, so that the order in which routers tick cannot matter.
class FlitRouter {
 public:
  virtual ~FlitRouter() = default;
  // Both vectors are indexed by port. The caller clears `outputs`.
  virtual void tick(FlitCycle cycle, const std::vector<FlitPortWires>& inputs,
                    std::vector<FlitPortWires>& outputs) = 0;
  // The router holds nothing: without input, no later tick changes or sends anything.
  [[nodiscard]] virtual bool is_quiet() const = 0;
};

// The answers that a FlitRouter reads from a packet's header. Equal questions have equal answers.
class FlitRouteSource {
 public:
  struct Answer {
    std::uint32_t port = 0;
    std::uint64_t virtual_channels = 0;  // any of these, one bit each
  };
  [[nodiscard]] virtual Answer route(std::uint32_t input_port, std::uint32_t virtual_channel,
                                     Flit head) const = 0;
  // The packet's length, because virtual cut-through requires room for the whole packet.
  [[nodiscard]] virtual std::uint32_t flits(Flit head) const = 0;

 protected:
  ~FlitRouteSource() = default;
};

}  // namespace apenet
