// Virtual time for the processor's cycle counter; see cycle_counter.cpp.
#pragma once

namespace apenet::shim {

// From now on the cycle counter shows virtual time in this thread and in threads it creates, if the run has
// --trap-tsc.
void begin_cycle_counter();

}  // namespace apenet::shim
