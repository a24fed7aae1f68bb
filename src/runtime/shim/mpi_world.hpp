// The world that MPI_Init makes: the process manager through which its ranks meet, and what a run requires of
// it.
#pragma once

#include "runtime/ipc/client.hpp"

namespace apenet::shim {

// Whether the library speaks with the process manager that every rank is started with (PMI-1), as MPICH does.
// Open MPI needs its own launcher.
bool is_mpich();

// What Open MPI's launcher takes for the host's name (launcher_names.c).
inline constexpr const char* launcher_host_name = "apenet";

// Whether the rank has taken over the variables of Open MPI's launcher.
bool has_launcher();

// Gives Open MPI the process manager that it needs, unless its launcher has started the rank: the simulator
// starts that launcher, and the rank takes over what the launcher tells its own process of the same rank in
// variables. Returns when no rank is known to have another library; if one has, the simulator ends the run.
// Call before the library initialises itself.
void find_process_manager(const ipc::Client& client);

// Ends the process if the process manager has sent an answer to something that MPI has not asked. Call before
// MPI_Finalize, which would take it for its own.
void refuse_left_answers();

// Ends the process if its address space is limited (RLIMIT_AS) to less than MPI's start needs. has_network:
// MPI opens the simulated network, which maps the simulation once more. Libraries do not say what they lack.
void require_address_space(const ipc::Client& client, bool has_network);

// Called when the process ends. If it is in MPI_Init and has little of a limited address space left, the run
// says so.
void note_end_of_start();

// Ends a process of a run whose rank another process represents: it would begin a world of its own, in the
// host's time. Does nothing outside of a run, and in a fork of the rank.
void refuse_second_program();

// What a rank gets that has initialised MPI and looks up a function that begins MPI in another library: that
// one would begin a world of its own, so the call ends the rank. In any other process, the function itself.
void* second_library_init(void* function);

// Tells the simulator that the rank aborts the run with this code, if its library does not tell the process
// manager. The rank then has to end.
void note_abort(ipc::Client& client, int code);

// Ends the process after an abort with this code.
[[noreturn]] void exit_aborted(int code);

// Records the first line of the library's version string, and whose place the library takes.
void note_version(ipc::Client& client);

// Ends the process with a message if the world is not that of the run, or if its messages would go past the
// simulated network. Requires note_library().
void check_world(ipc::Client& client);

}  // namespace apenet::shim
