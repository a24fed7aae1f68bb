// CpuLinks: the processor path of a TNW card, a serial resource.
#pragma once

#include <array>
#include <cstdint>

#include "kernel/simulation.hpp"
#include "nic/engine_use.hpp"

namespace apenet::tnw {

// How long an item occupies the links, and since when it was there.
struct NextItem {
  Time span = Time::never();  // never: there is none
  Time there;
};

// One side of the processor path: the direction to the card, or the direction from it.
class CpuLinkUser {
 public:
  // Chooses the next item to move.
  virtual NextItem take_turn() = 0;
  // Called when that time is over.
  virtual void turn_over() = 0;

 protected:
  ~CpuLinkUser() = default;
};

// The links between Cell and NWP: one transfer at a time in either direction. If both sides have something to
// move, they take turns packet by packet.
class CpuLinks final : private EventHandler {
 public:
  CpuLinks(Simulation& simulation, EventSource& source, CpuLinkUser& outwards, CpuLinkUser& inwards)
      : simulation_(simulation), source_(source), users_{&outwards, &inwards} {}
  CpuLinks(const CpuLinks&) = delete;
  CpuLinks& operator=(const CpuLinks&) = delete;

  // Call when a side may have something to move.
  void serve();
  [[nodiscard]] const EngineUse& use() const { return use_; }

  struct State {
    std::uint8_t last = 1;  // arbiter state
    bool is_busy = false;
  };

 private:
  void handle_event(const Event& event) override;

  Simulation& simulation_;
  EventSource& source_;
  std::array<CpuLinkUser*, 2> users_;
  State state_;
  EngineUse use_;
};

}  // namespace apenet::tnw
