// MPI calls that the simulator has to know of: where virtual time begins and ends, and which calls only look.
//
// No MPI header is used: the shim serves every MPI library, and what it passes on are pointers and integers,
// which all ABIs hand over in the same registers.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using Word = std::intptr_t;

// A library loaded RTLD_LOCAL (as mpi4py loads MPI) is not found by RTLD_NEXT: look into every loaded object.
struct Search {
  const char* name;
  void* found;
};

int search_object(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (object->dlpi_name == nullptr || std::strstr(object->dlpi_name, "libmpi") == nullptr) return 0;
  void* handle = dlopen(object->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return 0;
  search.found = dlsym(handle, search.name);
  dlclose(handle);
  return search.found != nullptr ? 1 : 0;
}

// The profiling name of an MPI function: the library's own, whatever stands in front of it.
void* profiling_symbol(const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  Search search{name, nullptr};
  dl_iterate_phdr(search_object, &search);
  if (search.found == nullptr) {
    std::fprintf(stderr, "apenet: the program calls %s, but no MPI library that has it is loaded\n",
                 name + 1);
    std::_Exit(2);
  }
  return search.found;
}

template <typename Result = int, typename... Arguments>
Result call(void* function, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

// What the library calls itself, up to the end of the first line.
void note_library(ipc::Client& client) {
  std::string text(8192, '\0');  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest
  int length = 0;
  call(profiling_symbol("PMPI_Get_library_version"), text.data(), &length);
  text.resize(std::min(text.find_first_of(std::string{"\n\0", 2}), sizeof(ipc::Block::library) - 1));
  std::replace(text.begin(), text.end(), '\t', ' ');
  std::memcpy(client.block().library, text.c_str(), text.size() + 1);
}

// Initialises MPI as the process that the simulator knows for this rank. Virtual time begins when all have
// done so.
template <typename... Arguments>
int initialise(const char* function, Arguments... arguments) {
  ipc::Client* client = ipc::Client::instance();
  const int result = call(profiling_symbol(function), arguments...);
  if (result != 0 || client == nullptr || client->block().initialised != 0) return result;
  note_library(*client);
  client->start();
  return result;
}

// Marks the time in which the program only looks: the provider then answers truthfully instead of skipping
// ahead.
class Look {
 public:
  Look() : client_(virtual_client()) {
    if (client_ == nullptr) return;
    client_->observe_compute();
    ++client_->block().nonblocking;
  }
  ~Look() {
    if (client_ != nullptr) --client_->block().nonblocking;
  }
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

 private:
  ipc::Client* client_;
};

}  // namespace
}  // namespace apenet::shim

using apenet::shim::call;
using apenet::shim::Look;
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
  if (apenet::ipc::Client* client = apenet::ipc::Client::attached()) client->finish();
  return result;
}

APENET_EXPORT double MPI_Wtime() {
  apenet::ipc::Client* client = apenet::shim::virtual_client();
  if (client == nullptr) return call<double>(profiling_symbol("PMPI_Wtime"));
  client->observe_compute();
  client->charge(client->costs().clock_read_ps);
  return static_cast<double>(client->clock_ps()) * 1e-12;
}

APENET_EXPORT double MPI_Wtick() {
  return apenet::shim::virtual_client() == nullptr ? call<double>(profiling_symbol("PMPI_Wtick")) : 1e-12;
}

// A function that is called often finds its original once.
#define APENET_LOOKS(name, parameters, ...)                    \
  APENET_EXPORT int name parameters {                          \
    static void* const original = profiling_symbol("P" #name); \
    const Look look;                                           \
    return call(original, __VA_ARGS__);                        \
  }
#define APENET_LOOKS_2(name) APENET_LOOKS(name, (Word a, Word b), a, b)
#define APENET_LOOKS_3(name) APENET_LOOKS(name, (Word a, Word b, Word c), a, b, c)
#define APENET_LOOKS_4(name) APENET_LOOKS(name, (Word a, Word b, Word c, Word d), a, b, c, d)
#define APENET_LOOKS_5(name) APENET_LOOKS(name, (Word a, Word b, Word c, Word d, Word e), a, b, c, d, e)
#define APENET_LOOKS_6(name) \
  APENET_LOOKS(name, (Word a, Word b, Word c, Word d, Word e, Word f), a, b, c, d, e, f)

APENET_LOOKS_3(MPI_Test)
APENET_LOOKS_4(MPI_Testall)
APENET_LOOKS_5(MPI_Testany)
APENET_LOOKS_5(MPI_Testsome)
APENET_LOOKS_5(MPI_Iprobe)
APENET_LOOKS_6(MPI_Improbe)
APENET_LOOKS_3(MPI_Request_get_status)
APENET_LOOKS_4(MPI_Request_get_status_all)
APENET_LOOKS_5(MPI_Request_get_status_any)
APENET_LOOKS_5(MPI_Request_get_status_some)
APENET_LOOKS_2(MPI_Win_test)
APENET_LOOKS_3(MPI_Parrived)
