// Interruption: lets long computations be ended from outside (Ctrl-C).
#pragma once

namespace apenet {

// A function that long computations call regularly, and that throws to end them. There is one per process, as
// for signals; nullptr, the default, for none. It must not access any simulation.
using InterruptionCheck = void (*)();
void set_interruption_check(InterruptionCheck check);
void check_for_interruption();

}  // namespace apenet
