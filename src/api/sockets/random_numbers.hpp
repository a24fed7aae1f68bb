#pragma once

namespace apenet::sockets {

// The 16 bytes that the kernel gives each program (AT_RANDOM) come from the run's seed, too, if virtual time
// has begun: Go draws the order of its maps and of its choices from them.
void draw_process_numbers();

}  // namespace apenet::sockets
