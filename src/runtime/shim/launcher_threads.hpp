// Open MPI's helper threads, which talk to its launcher.
#pragma once

namespace apenet::shim {

// Until these threads have nothing left to do, and thus to free: else the host decides whether memory that
// they free is free again when the program next allocates. Waits 0.2 s at most, because a thread of the
// program may go on for ever.
void await_launcher_threads();

}  // namespace apenet::shim
