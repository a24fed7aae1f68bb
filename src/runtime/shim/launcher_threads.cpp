#include "runtime/shim/launcher_threads.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>

#include <ctime>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// Open MPI's interface to its launcher; nullptr if it is not loaded.
void* pmix_symbol(const char* name) {
  void* library = dlopen("libpmix.so.2", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return nullptr;
  void* symbol = dlsym(library, name);
  dlclose(library);
  return symbol;
}

}  // namespace

void await_launcher_threads() {
  if (ipc::is_single_threaded()) return;
  constexpr int most_looks = 2000;
  constexpr timespec moment{.tv_sec = 0, .tv_nsec = 100'000};
  timespec* const remaining = nullptr;
  for (int look = 0; look < most_looks && !ipc::are_others_blocked(); ++look)
    ipc::host_call(SYS_nanosleep, &moment, remaining);
}

}  // namespace apenet::shim

using apenet::shim::Word;

// Called for the address of each rank to which this one sends for the first time.
APENET_EXPORT int PMIx_Get(Word process, Word key, Word hints, Word hint_count, Word value) {
  constexpr int not_supported = -47;
  void* const real = apenet::shim::pmix_symbol("PMIx_Get");
  if (real == nullptr) return not_supported;
  const int result = apenet::shim::call(real, process, key, hints, hint_count, value);
  if (apenet::shim::virtual_client() != nullptr) apenet::shim::await_launcher_threads();
  return result;
}
