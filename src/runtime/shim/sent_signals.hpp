// Signals that the program sends.
#pragma once

#include <csignal>

namespace apenet::shim {

// As the system calls of these names, with the sender's own description of the signal.
int queue_signal(pid_t process, siginfo_t& info);
int queue_signal_to_thread(pid_t process, pid_t thread, siginfo_t& info);

// As tkill() and pidfd_send_signal().
int signal_thread(pid_t thread, int signal);
int signal_descriptor(int file, int signal, siginfo_t* info, unsigned flags);

// Whether the signal, sent to the calling thread, stops the process. A handler would run in this thread,
// which also keeps what it blocks.
bool stops_own_process(int signal);

}  // namespace apenet::shim
