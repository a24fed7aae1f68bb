// The cores on which a program lets its threads run. The simulator moves ranks to other cores while they run;
// the program sees what it has set itself.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <optional>

namespace apenet::shim {

// What a thread that is about to be created inherits: of the attributes, or of its creator. nullopt: the
// program has set neither.
[[nodiscard]] std::optional<cpu_set_t> affinity_to_inherit(const pthread_attr_t* attributes);
// The calling thread begins with these cores.
void begin_with_affinity(const std::optional<cpu_set_t>& cores);

}  // namespace apenet::shim
