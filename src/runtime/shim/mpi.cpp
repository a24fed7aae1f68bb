// Where virtual time begins and ends, what must hold for it, and what MPI's own clock says.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/cycle_counter.hpp"
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// What the library calls itself, up to the end of the first line.
void note_version(ipc::Client& client) {
  std::string text(8192, '\0');  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest
  int length = 0;
  call(profiling_symbol("PMPI_Get_library_version"), text.data(), &length);
  text.resize(std::min(text.find_first_of(std::string{"\n\0", 2}), sizeof(ipc::Identity::library) - 1));
  std::replace(text.begin(), text.end(), '\t', ' ');
  std::memcpy(client.block().identity.library, text.c_str(), text.size() + 1);
}

// By its process manager.
bool is_mpich() {
  return std::getenv("PMI_FD") != nullptr;
}

// A setting with which MPICH's messages would not cross the simulated network, or its processes wait for each
// other in shared memory that the shim keeps them from (segments.cpp): refused here, where it can be named.
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
    std::fprintf(
        stderr,
        "apenet: %s = '%s' in the program's environment bypasses the simulated network: expected %s, %s\n",
        setting.name, value == nullptr ? "" : value, setting.value, setting.why);
    std::_Exit(2);
  }
}

// Whether this thread is inside a call of the library that the shim has already entered: a library may use
// its own functions, under either name.
thread_local bool inside = false;

class Inside {
 public:
  Inside() { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// While MPI is being initialised, an endpoint that its library enables begins nothing.
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

// Virtual time begins with the first initialisation: another thread's session waits for that.
void begin(ipc::Client& client, bool has_world) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> guard(mutex);
  if (client.block().identity.initialised != 0) return;
  note_version(client);
  note_library(client.notes(), has_world);
  client.start();
  begin_cycle_counter();
}

// Initialises MPI as the process that the simulator knows for this rank. Virtual time begins when all have
// done so.
template <typename... Arguments>
int initialise(const char* function, Arguments... arguments) {
  void* const original = profiling_symbol(function);
  if (inside) return call(original, arguments...);
  const Inside mark;
  ipc::Client* client = ipc::Client::instance();
  if (client != nullptr) refuse_bypass();
  const Initialising initialising(client);
  const int result = call(original, arguments...);
  if (result != 0 || client == nullptr) return result;
  client->opened();
  begin(*client, std::strcmp(function, "PMPI_Session_init") != 0);
  return result;
}

// Calls the library's own function that ends MPI, or a session.
template <typename... Arguments>
int leave(void* original, Arguments... arguments) {
  ipc::Client* client = virtual_client();
  if (client != nullptr) client->progress().begin_leave();
  const int result = call(original, arguments...);
  if (client != nullptr) client->progress().end_leave();
  return result;
}

int finalise() {
  void* const original = profiling_symbol("PMPI_Finalize");
  if (inside) return call(original);
  const Inside mark;
  const InCall note(virtual_client(), ipc::MpiCall::MPI_Finalize, {});
  ipc::Client* client = virtual_client();
  // Open MPI sends nothing here, but takes what has come, as long as its process manager has it wait.
  if (client != nullptr && !is_mpich()) client->block().clock.hold();
  const int result = leave(original);
  client = ipc::Client::attached();
  if (client == nullptr) return result;
  if (client->closed()) {
    client->finish();
  } else {  // Sessions outlive the world.
    client->block().clock.release();
  }
  return result;
}

// The last one may be a rank's end, or it initialises another: it stays in the simulation, and may leave.
int finalise_session(Word session) {
  void* const original = profiling_symbol("PMPI_Session_finalize");
  if (inside) return call(original, session);
  const Inside mark;
  const int result = leave(original, session);
  ipc::Client* client = ipc::Client::attached();
  if (result == 0 && client != nullptr && client->closed()) client->block().identity.closed = 1;
  return result;
}

// Open MPI's launcher would end the other ranks wherever the host has them, and keep the status to itself.
int abort(Word communicator, Word code) {
  const ipc::Client* client = ipc::Client::attached();
  if (client == nullptr || is_mpich()) return call(profiling_symbol("PMPI_Abort"), communicator, code);
  const int status = static_cast<int>(code) & 0xff;
  std::fflush(nullptr);
  std::fprintf(stderr, "MPI_Abort(%d) called by rank %u\n", static_cast<int>(code), client->rank());
  std::_Exit(status == 0 ? 1 : status);
}

double clock_s() {
  ipc::Client* client = clock_client();
  if (client == nullptr) return call<double>(profiling_symbol("PMPI_Wtime"));
  client->block().lock.note_thread();
  return static_cast<double>(apenet::shim::read_clock_ps(*client)) * 1e-12;
}

double clock_tick_s() {
  return clock_client() == nullptr ? call<double>(profiling_symbol("PMPI_Wtick")) : 1e-12;
}

}  // namespace
}  // namespace apenet::shim

using apenet::shim::Word;

// Under both names: what stands between a program and its MPI library (a profiler, the bindings of Fortran)
// calls the profiling one.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define APENET_BOTH_NAMES(result, name, parameters, body) \
  APENET_EXPORT result name parameters {                  \
    return apenet::shim::body;                            \
  }                                                       \
  APENET_EXPORT result P##name parameters {               \
    return apenet::shim::body;                            \
  }

APENET_BOTH_NAMES(int, MPI_Init, (Word argc, Word argv), initialise("PMPI_Init", argc, argv))
APENET_BOTH_NAMES(int, MPI_Init_thread, (Word argc, Word argv, Word required, Word provided),
                  initialise("PMPI_Init_thread", argc, argv, required, provided))
APENET_BOTH_NAMES(int, MPI_Session_init, (Word info, Word handler, Word session),
                  initialise("PMPI_Session_init", info, handler, session))
APENET_BOTH_NAMES(int, MPI_Finalize, (), finalise())
APENET_BOTH_NAMES(int, MPI_Session_finalize, (Word session), finalise_session(session))
APENET_BOTH_NAMES(int, MPI_Abort, (Word communicator, Word code), abort(communicator, code))
APENET_BOTH_NAMES(double, MPI_Wtime, (), clock_s())
APENET_BOTH_NAMES(double, MPI_Wtick, (), clock_tick_s())
// NOLINTEND(bugprone-macro-parentheses)
