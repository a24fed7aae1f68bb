// The processor's cycle counter: see cycle_counter.cpp.
#pragma once

namespace apenet::shim {

// From now on this thread, and those that it makes, read virtual time, if the run has --trap-tsc.
void begin_cycle_counter();

}  // namespace apenet::shim
