// Wormhole: what router.switching = "wormhole" changes in the packet engine.
#pragma once

#include <cstdint>

#include "kernel/time.hpp"
#include "network/description.hpp"
#include "network/packet/serialisation.hpp"

namespace apenet::packet {

// The packet engine grants whole packets. These times let a packet span buffers as its flits would:
// docs/models/network.md, "Wormhole".
class Wormhole {
 public:
  Wormhole() = default;  // off: virtual cut-through
  explicit Wormhole(const NetworkDescription& network);

  [[nodiscard]] bool is_on() const { return is_on_; }
  // Least time from a tail that leaves a buffer to the next header: its route and virtual channel.
  [[nodiscard]] Time header_gap() const { return header_gap_; }
  // Least time from a header that leaves for a buffer to its tail: `duration`, or longer if the flits
  // wait for credits.
  [[nodiscard]] Time span(std::uint32_t bytes, Time duration) const;
  // How long before the credit of its last flit the space for such a packet is usable; may be
  // negative.
  [[nodiscard]] Time credit_lead(std::uint32_t bytes) const;

 private:
  [[nodiscard]] bool waits_for_credits(std::uint32_t bytes) const;

  bool is_on_ = false;
  std::uint32_t flit_bytes_ = 1;
  std::int64_t buffer_bytes_ = 0;  // as described; the engine's own buffers hold at least one packet
  Serialisation link_;
  Time header_gap_;
  Time traversal_;  // time through the switch: a credit is usable before it, a header leaves after it
  Time flit_loop_;  // from a flit that is no header leaving for a buffer to its credit being usable
};

}  // namespace apenet::packet
