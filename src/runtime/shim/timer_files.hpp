// Descriptors of timerfd_create(), whose timers are virtual.
#pragma once

#include <sys/types.h>

#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {

// The timer of a descriptor; nullptr if it is none, or the process has the host's time.
VirtualTimer* timer_of_file(int file);
// Waits until the timer has ended, or a signal's handler has run. Returns false then, with errno set. Does
// not wait if the host's read does that better: the timer does not run, or the descriptor does not block.
bool await_timer_file(VirtualTimer& timer);
// Puts the number of ends in place of the host's, which has been read.
void read_timer_ends(VirtualTimer& timer, void* bytes);

}  // namespace apenet::shim
