// Virtual time for the processor's cycle counter; see cycle_counter.cpp.
#pragma once

namespace apenet::shim {

// From now on the cycle counter shows virtual time in this thread and in threads it creates, if the run has
// --trap-tsc.
void begin_cycle_counter();
// In the child of a fork that acts in virtual time: its counter goes on, too. Other children have the host's.
void keep_cycle_counter();

// Gives this thread the host's counter while a new program starts: it has no handler yet, and its loader
// reads the counter.
class Untrapped {
 public:
  Untrapped();
  ~Untrapped();
  Untrapped(const Untrapped&) = delete;
  Untrapped& operator=(const Untrapped&) = delete;
};

}  // namespace apenet::shim
