// The MPI functions at which virtual time begins and ends, the checks at its beginning, and MPI's clock.
#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/computation.hpp"
#include "runtime/shim/heap.hpp"
#include "runtime/shim/interpreter_memory.hpp"
#include "runtime/shim/launcher_threads.hpp"
#include "runtime/shim/memory_watchers.hpp"
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/mpi_world.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// Ends the process if a setting would let MPICH's messages bypass the simulated network, or let its processes
// wait for each other in shared memory, which the shim does not share (segments.cpp). Checked here because
// the message can name the setting.
void refuse_bypass() {
  struct Setting {
    const char* name;
    const char* value;
    const char* why;
  };
  constexpr Setting needed[] = {
      {"MPIR_CVAR_NOLOCAL", "1", "otherwise messages go through shared memory"},
      {"MPIR_CVAR_CH4_NETMOD", "ofi", "otherwise messages go through UCX"},
      {"FI_PROVIDER", "apenet", "otherwise libfabric takes another network"},
  };
  if (!is_mpich()) return;
  for (const Setting& setting : needed) {
    const char* value = std::getenv(setting.name);
    if (value != nullptr && std::strcmp(value, setting.value) == 0) continue;
    ipc::Client::refuse(std::string(setting.name) + " = '" + (value == nullptr ? "" : value) +
                        "' in the program's environment bypasses the simulated network: expected " +
                        setting.value + ", " + setting.why);
  }
}

// MPICH and Intel MPI would take another rank's place, or wait for ranks that there are not.
void refuse_other_place(const ipc::Client& client) {
  const std::pair<const char*, std::uint32_t> expected[] = {{"PMI_RANK", client.rank()},
                                                            {"PMI_SIZE", client.size()}};
  if (abi() == Abi::openmpi) return;
  for (const auto& [name, number] : expected) {
    const char* value = std::getenv(name);
    if (value == nullptr || value == std::to_string(number)) continue;
    ipc::Client::refuse(std::string(name) + " = '" + value + "' in the program's environment: expected " +
                        std::to_string(number) + ", as apenet run has set it");
  }
}

// MPICH reaches its process manager by a descriptor, which what has started the program may have closed, or
// used for something else. Connects anew then, or ends the process: MPICH's own message would only say that a
// descriptor is bad.
void require_manager() {
  const char* descriptor = std::getenv("PMI_FD");
  int type = 0;
  socklen_t bytes = sizeof type;
  if (descriptor == nullptr || getsockopt(std::atoi(descriptor), SOL_SOCKET, SO_TYPE, &type, &bytes) == 0)
    return;
  const int connected = ipc::Client::connect_to_manager(std::atoi(descriptor));
  if (connected >= 0) {
    const std::string number = std::to_string(connected);
    if (number != descriptor) setenv("PMI_FD", number.c_str(), 1);
    return;
  }
  if (fcntl(std::atoi(descriptor), F_GETFD) >= 0) return;
  ipc::Client::refuse(
      std::string("PMI_FD = '") + descriptor +
      "' in the program's environment: expected an open descriptor, by which MPI reaches the run; "
      "what has started the program has closed it (sudo, unless sudo -C 200; Python's subprocess, "
      "unless close_fds=False; Java; tmux)");
}

// Whether this thread is inside a library call that the shim has already entered. A library may call its own
// functions, under either name.
thread_local bool inside = false;

class Inside {
 public:
  Inside() { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// Makes standard output line-buffered, so that a crash loses no finished line. Open MPI's mpirun does so with
// a pseudo-terminal for each rank; MPICH turns the buffer off by itself.
void keep_lines() {
  const bool is_buffered = __fbufsize(stdout) != 1;  // 0 before the first output
  if (is_buffered && !is_mpich()) std::setvbuf(stdout, nullptr, _IOLBF, 0);
}

// Marks that MPI is being initialised. An endpoint that the library enables meanwhile does not begin virtual
// time.
class Initialising {
 public:
  explicit Initialising(ipc::Client* client) : client_(client) {
    if (client_ != nullptr) ++client_->block().identity.initialising;
  }
  ~Initialising() {
    if (client_ != nullptr) --client_->block().identity.initialising;
  }
  Initialising(const Initialising&) = delete;
  Initialising& operator=(const Initialising&) = delete;

 private:
  ipc::Client* client_;
};

// Open MPI's initialisation does so only if it has to wait for other ranks, and its first check allocates
// memory.
void check_for_messages() {
  if (const std::uint64_t progress = openmpi_object("opal_progress")) call(reinterpret_cast<void*>(progress));
}

// Virtual time begins with the first initialisation. If another thread initialises a session meanwhile, it
// waits here.
void begin(ipc::Client& client, bool has_world) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> guard(mutex);
  if (client.block().identity.initialised != 0) return;
  note_version(client);
  note_library(client.notes(), has_world);
  if (has_world) check_world(client);
  if (abi() == Abi::openmpi) check_for_messages();
  find_memory_watchers();
  client.start();
  // All ranks have initialised MPI: the launcher has told the helper threads all that it will.
  if (abi() == Abi::openmpi) await_launcher_threads();
  const bool is_interpreter = settle_interpreter(client);
  const EarlyMemory early = settle_heap();
  if (is_interpreter) {
    client.block().identity.early_begin = early.begin;
    client.block().identity.early_end = early.end;
  }
}

// Whether MPI sends over sockets of the simulated nodes (host/openmpi_launcher.py).
bool is_over_sockets() {
  if (abi() != Abi::openmpi) return false;
  const char* const layer = std::getenv("OMPI_MCA_pml");
  return layer != nullptr && std::strcmp(layer, "ob1") == 0;
}

// Initialises MPI in the process that represents this rank. Virtual time begins when all ranks have done so.
template <typename... Arguments>
int initialise(const void* caller, const char* function, Arguments... arguments) {
  void* const original = profiling_symbol(function);
  if (is_stub()) note_own_mpi();
  if (inside || is_stub()) return call(original, arguments...);
  const Inside mark;
  ipc::Client* client = ipc::Client::instance();
  const ProgramCall program_call(caller, function + 1, Callee::library);  // without the P of PMPI_
  if (client == nullptr) refuse_second_program();
  if (client != nullptr) {
    refuse_other_place(*client);
    require_manager();
    find_process_manager(*client);
    refuse_bypass();
    require_address_space(*client, !is_over_sockets());
    keep_lines();
  }
  const Initialising initialising(client);
  const int result = call(original, arguments...);
  if (result != 0 || client == nullptr) return result;
  client->opened();
  begin(*client, std::strcmp(function, "PMPI_Session_init") != 0);
  return result;
}

// The thread is in MPI_Finalize.
constinit thread_local bool is_finalising = false;

class Finalising {
 public:
  Finalising() { is_finalising = true; }
  ~Finalising() { is_finalising = false; }
  Finalising(const Finalising&) = delete;
  Finalising& operator=(const Finalising&) = delete;
};

// Open MPI waits here for its process manager, and checks for messages meanwhile. Whether a rank still meets
// a message would depend on how long the manager takes. So each rank first checks until all ranks wait and
// the network is empty.
void await_empty_network(ipc::Client& client) {
  constexpr int most_checks = 100'000;  // a library that has nothing to check does not wait in them
  client.progress().begin_leave();
  client.progress().moved();  // what was granted before is over
  const std::uint32_t before = client.progress().grants();
  for (int i = 0; i < most_checks && client.progress().grants() == before; ++i) check_for_messages();
  client.progress().end_leave();
}

// Calls the library's function that finalises MPI or a session.
template <typename... Arguments>
int leave(void* original, Arguments... arguments) {
  ipc::Client* client = virtual_client();
  if (client != nullptr) client->progress().begin_leave();
  is_leaving = client != nullptr;
  const int result = call(original, arguments...);
  is_leaving = false;
  if (client != nullptr) client->progress().end_leave();
  return result;
}

int finalise(const void* caller) {
  if (ipc::Client::is_fork()) return 0;  // mpi4py does so at the end of a child, whose parent's MPI goes on
  void* const original = profiling_symbol("PMPI_Finalize");
  if (inside || is_stub()) return call(original);
  const Inside mark;
  const ProgramCall program_call(caller, "MPI_Finalize", Callee::library);
  const InCall note(virtual_client(), ipc::MpiCall::MPI_Finalize, {}, {.caller = caller});
  ipc::Client* client = virtual_client();
  if (client != nullptr) note_finalise(client->notes());
  if (client != nullptr) refuse_left_answers();
  if (client != nullptr && client->ordered() != nullptr) {
    client->lock();  // the rank's clock comes to that of the thread
    client->unlock();
  }
  // Open MPI sends nothing here, but receives for as long as its process manager lets it wait.
  if (client != nullptr && !is_mpich()) client->block().clock.hold();
  const Finalising finalising;
  if (client != nullptr && abi() == Abi::openmpi) await_empty_network(*client);
  const int result = leave(original);
  client = rank_client();
  if (client == nullptr) return result;
  const bool is_last = client->closed();  // sessions may outlive the world
  const bool has_sockets = client->has_sockets();
  if (is_last && !has_sockets) {
    client->finish();
  } else {  // it stays in the simulation
    client->block().clock.release();
    if (is_last) client->block().identity.closed = 1;
  }
  if (is_last) report_computation(*client);
  return result;
}

// After the last session the rank may end, or initialise another session. So it stays in the simulation, but
// is marked as allowed to leave.
int finalise_session(const void* caller, Word session) {
  void* const original = profiling_symbol("PMPI_Session_finalize");
  if (inside) return call(original, session);
  const Inside mark;
  const ProgramCall program_call(caller, "MPI_Session_finalize", Callee::library);
  const int result = leave(original, session);
  ipc::Client* client = rank_client();
  if (result == 0 && client != nullptr && client->closed()) client->block().identity.closed = 1;
  return result;
}

// Ends the rank, which then has the clock of its call. MPICH tells the process manager, and returns from
// MPICH 5 on. Open MPI's launcher would end the other ranks at any point, so the rank tells the simulator.
int abort(Word communicator, Word code) {
  ipc::Client* client = rank_client();
  if (client == nullptr) return call(profiling_symbol("PMPI_Abort"), communicator, code);
  client->attend();
  std::fflush(nullptr);
  if (is_mpich()) {
    call(profiling_symbol("PMPI_Abort"), communicator, code);
  } else {
    std::fprintf(stderr, "MPI_Abort(%d) called by rank %u\n", static_cast<int>(code), client->rank());
    note_abort(*client, static_cast<int>(code));
  }
  exit_aborted(static_cast<int>(code));
}

double clock_s(const void* caller) {
  const ProgramCall program_call(caller, "MPI_Wtime", Callee::library);
  ipc::Client* client = clock_client();
  if (client == nullptr) return call<double>(profiling_symbol("PMPI_Wtime"));
  client->note_thread();
  return static_cast<double>(apenet::shim::read_clock_ps(*client)) * 1e-12;
}

double clock_tick_s() {
  return clock_client() == nullptr ? call<double>(profiling_symbol("PMPI_Wtick")) : 1e-12;
}

}  // namespace

APENET_EXPORT std::uint64_t apenet_waiting_mpi_call() {
  static const bool counts = is_over_sockets();  // called when MPI has begun
  if (!counts) return 0;
  if (is_finalising) return ipc::finalising_mpi_call;
  ipc::Client* const client = virtual_client();
  if (client == nullptr || !is_in_call() || own_note == &shared_note || client->calls().is_testing())
    return 0;
  return std::uint64_t{static_cast<std::uint16_t>(own_note->call.get())} << 32U | own_note->number.get();
}

// Exported under both names: a profiler or the Fortran bindings between program and library call the
// profiling name.
#define APENET_BOTH_NAMES(result, name, parameters, body)                    \
  APENET_EXPORT result name parameters {                                     \
    [[maybe_unused]] const void* const caller = __builtin_return_address(0); \
    return body;                                                             \
  }                                                                          \
  APENET_EXPORT result P##name parameters {                                  \
    [[maybe_unused]] const void* const caller = __builtin_return_address(0); \
    return body;                                                             \
  }

APENET_BOTH_NAMES(int, MPI_Init, (Word argc, Word argv), initialise(caller, "PMPI_Init", argc, argv))
APENET_BOTH_NAMES(int, MPI_Init_thread, (Word argc, Word argv, Word required, Word provided),
                  initialise(caller, "PMPI_Init_thread", argc, argv, required, provided))
APENET_BOTH_NAMES(int, MPI_Session_init, (Word info, Word handler, Word session),
                  initialise(caller, "PMPI_Session_init", info, handler, session))
APENET_BOTH_NAMES(int, MPI_Finalize, (), finalise(caller))
APENET_BOTH_NAMES(int, MPI_Session_finalize, (Word session), finalise_session(caller, session))
APENET_BOTH_NAMES(int, MPI_Abort, (Word communicator, Word code), abort(communicator, code))
APENET_BOTH_NAMES(double, MPI_Wtime, (), clock_s(caller))
APENET_BOTH_NAMES(double, MPI_Wtick, (), clock_tick_s())
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace apenet::shim
