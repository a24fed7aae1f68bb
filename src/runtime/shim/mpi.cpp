// Where virtual time begins and ends, what must hold for it, and what MPI's own clock says.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// What the library calls itself, up to the end of the first line.
void note_library(ipc::Client& client) {
  std::string text(8192, '\0');  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest
  int length = 0;
  call(profiling_symbol("PMPI_Get_library_version"), text.data(), &length);
  text.resize(std::min(text.find_first_of(std::string{"\n\0", 2}), sizeof(ipc::Block::library) - 1));
  std::replace(text.begin(), text.end(), '\t', ' ');
  std::memcpy(client.block().library, text.c_str(), text.size() + 1);
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
  if (std::getenv("PMI_FD") == nullptr) return;  // not MPICH
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

// Initialises MPI as the process that the simulator knows for this rank. Virtual time begins when all have
// done so.
template <typename... Arguments>
int initialise(const char* function, Arguments... arguments) {
  ipc::Client* client = ipc::Client::instance();
  if (client != nullptr) refuse_bypass();
  const int result = call(profiling_symbol(function), arguments...);
  if (result != 0 || client == nullptr) return result;
  client->opened();
  if (client->block().initialised != 0) return result;
  note_library(*client);
  client->start();
  return result;
}

}  // namespace
}  // namespace apenet::shim

using apenet::shim::call;
using apenet::shim::profiling_symbol;
using apenet::shim::Word;

APENET_EXPORT int MPI_Init(Word argc, Word argv) {
  return apenet::shim::initialise("PMPI_Init", argc, argv);
}

APENET_EXPORT int MPI_Init_thread(Word argc, Word argv, Word required, Word provided) {
  return apenet::shim::initialise("PMPI_Init_thread", argc, argv, required, provided);
}

APENET_EXPORT int MPI_Session_init(Word info, Word handler, Word session) {
  return apenet::shim::initialise("PMPI_Session_init", info, handler, session);
}

APENET_EXPORT int MPI_Finalize() {
  const int result = call(profiling_symbol("PMPI_Finalize"));
  apenet::ipc::Client* client = apenet::ipc::Client::attached();
  // Sessions outlive the world.
  if (client != nullptr && client->closed()) client->finish();
  return result;
}

// The last one may be a rank's end, or it initialises another: it stays in the simulation, and may leave.
APENET_EXPORT int MPI_Session_finalize(Word session) {
  const int result = call(profiling_symbol("PMPI_Session_finalize"), session);
  apenet::ipc::Client* client = apenet::ipc::Client::attached();
  if (result == 0 && client != nullptr && client->closed()) client->block().closed = 1;
  return result;
}

APENET_EXPORT double MPI_Wtime() {
  apenet::ipc::Client* client = apenet::shim::virtual_client();
  if (client == nullptr) return call<double>(profiling_symbol("PMPI_Wtime"));
  client->observe_compute();
  client->charge_clock_read();
  return static_cast<double>(client->clock_ps()) * 1e-12;
}

APENET_EXPORT double MPI_Wtick() {
  return apenet::shim::virtual_client() == nullptr ? call<double>(profiling_symbol("PMPI_Wtick")) : 1e-12;
}
