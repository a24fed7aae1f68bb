// The probe: a fixed piece of work that shows whether the core is disturbed.
//
// A hyperthread of another program on the same core, or of another guest, slows a thread down while it keeps
// its CPU clock running. The probe fills the core's execution units, so that such a neighbour shows. It
// touches no memory: the caches stay those of the program.
#pragma once

#include <cstdint>

namespace apenet::shim {

// CPU time that the probe takes, some 2 us: the least of a few repetitions.
[[nodiscard]] std::int64_t time_probe_ns();

}  // namespace apenet::shim
