// FlitRouter: one router behind its ports, for implementations other than the engine's own.
#pragma once

#include <cstdint>
#include <vector>

#include "network/flit/fabric.hpp"

namespace apenet {

// What stands on the wires of one port in one cycle. An input port reads a flit and writes a credit for its
// own buffers; the output port of the same number writes a flit and reads a credit.
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
// register by register. The engine runs all routers in arrays of its own; one node's router may instead be
// an instance of this interface, in lockstep with the others, which cannot tell.
//
// A Moore machine: tick reads what arrived at the ports in this cycle, and writes what stands on the wires
// in the next one. So the order in which routers tick cannot matter.
class FlitRouter {
 public:
  virtual ~FlitRouter() = default;
  // Both by port. The outputs come in cleared.
  virtual void tick(FlitCycle cycle, const std::vector<FlitPortWires>& inputs,
                    std::vector<FlitPortWires>& outputs) = 0;
  // Nothing is in it: without input, no tick would change anything or send anything, for ever.
  [[nodiscard]] virtual bool is_quiet() const = 0;
};

// What such a router asks the world around it for: what its header says of a packet. Equal questions, equal
// answers.
class FlitRouteSource {
 public:
  struct Answer {
    std::uint32_t port = 0;
    std::uint64_t virtual_channels = 0;  // any of these, a bit each
  };
  [[nodiscard]] virtual Answer route(std::uint32_t input_port, std::uint32_t virtual_channel,
                                     Flit head) const = 0;
  // The packet's length: virtual cut-through asks for room for all of it.
  [[nodiscard]] virtual std::uint32_t flits(Flit head) const = 0;

 protected:
  ~FlitRouteSource() = default;
};

}  // namespace apenet
