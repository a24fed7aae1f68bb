// Interruption: long work looks up now and then, for whoever may want it to end (Ctrl-C).
#pragma once

namespace apenet {

// What long work calls now and then; it throws to end the work. One for the process, as signals are: nullptr,
// the default, for none. It must not touch any simulation.
using InterruptionLook = void (*)();
void set_interruption_look(InterruptionLook look);
void look_for_interruption();

}  // namespace apenet
