// What the host calls the pipes, socket pairs and eventfds of the process, and who holds them.
//
// Nothing here allocates memory or takes a lock: waits in handlers of signals ask.
#pragma once

#include "runtime/ipc/order_files.hpp"

namespace apenet::shim {

// Keeps no errno, as what follows. FileKind::none: it is of another kind.
[[nodiscard]] ipc::FileName name_of_file(int file);
// The process has made it. other: the other socket of a pair; -1: there is none.
void note_made(ipc::MadeFile& made, int file, int other);
// Whether another process holds it: who has inherited it was forked after it was made. counts_order: also
// one that acts in the order.
[[nodiscard]] bool is_held_elsewhere(const ipc::MadeFile& made, bool counts_order);
// Whether calls on it do not wait (O_NONBLOCK).
[[nodiscard]] bool is_nonblocking(int file);

}  // namespace apenet::shim
