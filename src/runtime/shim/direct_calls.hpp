// Direct calls: system calls that the program's code makes itself (direct_code.hpp). They are answered as
// those by syscall() are (system_calls.hpp).
//
// The kernel turns each into a SIGSYS (syscall user dispatch) in the threads that ask for it, and tells the
// C library's own calls apart by their place. No thread asks in a process without direct code.
#pragma once

#include "runtime/ipc/direct_note.hpp"

extern "C" {
// This thread has called dlopen().
extern constinit thread_local char apenet_has_loaded
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
}

namespace apenet::shim {

// Scans the objects that are loaded. From the first one with direct code on, the direct calls of this
// thread and of threads that begin later are caught, and reads of the clocks by the kernel's own code, too.
void follow_direct_calls();

inline void follow_loaded_objects() {
  if (apenet_has_loaded == 0) [[likely]]
    return;
  apenet_has_loaded = 0;
  follow_direct_calls();
}

// A thread begins, or a process with one thread.
void catch_direct_calls();
// Before a vfork: its child shares the memory and returns first, which a caught call cannot. The thread
// catches its calls again by catch_direct_calls().
void let_direct_calls_pass();

// From now on all system calls of this thread are caught, also those of the C library, and noted if they may
// be checks for something outside (watched_calls.hpp), until the watch is ended, or the thread calls MPI. A
// start of a process or thread pauses the watch. Keep errno. Without effect where the host cannot catch
// calls, and under a debugger, which would stop at each.
void watch_calls();
void resume_watch_of_calls();
void end_watch_of_calls();

// The program does something by which its calls get past the shim.
void note_uncaught(ipc::UncaughtCall what);

}  // namespace apenet::shim
