// The C library's streams on simulated sockets.
#pragma once

namespace apenet::sockets {

// Standard input or output, if the descriptor of it stands for a socket now.
void take_over_standard_stream(int file);

}  // namespace apenet::sockets
