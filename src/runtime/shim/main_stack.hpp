// Where the stack of main() begins.
//
// The arguments and variables of a program lie above its stack, so their lengths decide where its frames lie,
// and with them its buffers: variables of users, paths, process ids. A card that translates addresses sees
// pages. So the stack of main() begins at a multiple of 256 KiB, below any usual environment, or of at most
// an eighth of the stack's limit, since a program needs the rest.
#pragma once

#include <cstddef>

namespace apenet::shim {

// How far below this frame, the first of the program, the stack of main() begins.
[[nodiscard]] std::size_t bytes_above_main(const void* frame);

// Lets the stack below this frame, where main() begins, be as large as the host makes it for a program that
// starts: a later limit of the address space (ulimit -v) would refuse its first page.
void reserve_below_main(const void* frame);

}  // namespace apenet::shim
