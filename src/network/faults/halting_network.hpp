// HaltingNetwork: what the layer of faults needs of a network engine.
#pragma once

#include <cstdint>

#include "network/network.hpp"
#include "network/routing/routing.hpp"

namespace apenet {

// Decides whether a packet may leave its card's FIFO for the network. A packet that it refuses stays there,
// with those behind it, until the next restart.
class InjectionGate {
 public:
  virtual bool admits(const Packet& packet) = 0;

 protected:
  ~InjectionGate() = default;
};

// An engine that can stop, take its packets back to their cards, and go on with other routes
// (docs/models/faults.md). tests/contract/fault_contract_test.cpp demands the same of every engine.
class HaltingNetwork : public Network {
 public:
  // Call before the first packet, or halt() fails.
  virtual void allow_halts() = 0;
  // Stops the network: packets whose tails have not reached an ejection buffer go back to the FIFO of their
  // card, in the order of injection, and routers are reset. Packets injected from now on wait. Returns how
  // many packets were taken back. Do not call it from a NetworkClient.
  virtual std::uint64_t halt() = 0;
  // Resumes with a routing (nullptr: the machine's own) and a gate (nullptr: none). Both must live until the
  // next restart.
  virtual void restart(const Routing* routing, InjectionGate* gate) = 0;
  // Messages with packets in the network or in a card's FIFO.
  [[nodiscard]] virtual std::uint64_t messages_under_way() const = 0;
};

}  // namespace apenet
