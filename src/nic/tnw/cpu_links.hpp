// CpuLinks: the processor path of a TNW card, a serial resource.
#pragma once

#include <array>
#include <cstdint>

#include "kernel/simulation.hpp"

namespace apenet {

// One side of the processor path: what goes to the card, or what comes from it.
class CpuLinkUser {
 public:
  // Chooses what to move next; returns how long that occupies the links, Time::never() if there is nothing.
  virtual Time take_turn() = 0;
  // That is over.
  virtual void turn_over() = 0;

 protected:
  ~CpuLinkUser() = default;
};

// The links between Cell and NWP, and what drives them: one transfer at a time, whichever its direction. Both
// sides take turns, packet by packet, when both have something.
class CpuLinks final : private EventHandler {
 public:
  CpuLinks(Simulation& simulation, EventSource& source, CpuLinkUser& outwards, CpuLinkUser& inwards)
      : simulation_(simulation), source_(source), users_{&outwards, &inwards} {}
  CpuLinks(const CpuLinks&) = delete;
  CpuLinks& operator=(const CpuLinks&) = delete;

  // Somebody may have something now that had nothing before.
  void serve();

 private:
  void handle_event(const Event& event) override;

  Simulation& simulation_;
  EventSource& source_;
  std::array<CpuLinkUser*, 2> users_;
  std::uint8_t last_ = 1;
  bool is_busy_ = false;
};

}  // namespace apenet
