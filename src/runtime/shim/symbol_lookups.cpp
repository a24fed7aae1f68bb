// dlsym(): a program that looks up a function in the library that has it gets the shim's function instead, as
// if it were linked to the library. Without this, ctypes.CDLL("libc.so.6").time would be the host's clock,
// and the MPI_Init of a library that was opened by dlopen() would begin a world of its own.
//
// A lookup without a library (RTLD_DEFAULT, RTLD_NEXT) depends on the object that calls dlsym(), so the C
// library must return to it (caller_stubs.cpp). The former finds the shim's functions anyway. The latter is
// for libraries that have a function of this name themselves; but a thread that one of them starts for itself
// (jemalloc) must have its place in the order.
#include <dlfcn.h>
#include <pthread.h>

#include <string>
#include <string_view>

#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/mpi_world.hpp"
#include "runtime/shim/own_mpi.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// The address at which the object with this function begins, or nullptr.
const void* object_of(const void* function) {
  Dl_info info{};
  return dladdr(function, &info) == 0 ? nullptr : info.dli_fbase;
}

// Whether this is the function that the shim's function of the same name stands for, and not one of a library
// that has its own.
bool is_replaced(const void* found, const char* name) {
  const bool is_mpi = std::string_view(name).starts_with("MPI_");
  if (!is_mpi && !std::string_view(name).starts_with("PMPI_")) return next_symbol(name) == found;
  const void* profiling = find_profiling_symbol(((is_mpi ? "P" : "") + std::string(name)).c_str());
  return profiling != nullptr && object_of(profiling) == object_of(found);
}

// Whether a function of this name, which is not replaced, begins an MPI that the simulator does not know.
bool begins_own_mpi(const char* name) {
  return is_init_of_mpi(name) && find_profiling_symbol("PMPI_Init") == nullptr;
}

// Whether the function begins the MPI of its own library. A profiler's calls that of another one.
bool begins_mpi_of(void* library, const void* found, const char* name) {
  if (!is_init_of_mpi(name)) return false;
  const void* const profiling = host_symbol(library, "PMPI_Init");
  return profiling != nullptr && object_of(profiling) == object_of(found);
}

}  // namespace
}  // namespace apenet::shim

extern "C" {
// Requires a handle of a library.
__attribute__((visibility("hidden"), used)) void* apenet_look_up(void* library, const char* name) {
  apenet::shim::follow_loaded_objects();
  void* found = apenet::shim::host_symbol(library, name);
  if (found == nullptr) return nullptr;  // dlerror() says why
  void* const own = apenet::shim::own_symbol(name);
  const bool is_of_shim =
      own != nullptr &&
      apenet::shim::object_of(own) == apenet::shim::object_of(reinterpret_cast<void*>(&apenet_look_up));
  if (is_of_shim && own != found) {
    if (apenet::shim::is_replaced(found, name)) {
      found = own;
    } else if (apenet::shim::begins_own_mpi(name)) {
      apenet::shim::note_own_mpi();
    } else if (apenet::shim::begins_mpi_of(library, found, name)) {
      found = apenet::shim::second_library_init(found);
    }
  }
  dlerror();  // forgets errors of the other lookups
  return found;
}

// For RTLD_NEXT: the function that the caller gets instead of the C library's; nullptr: none.
__attribute__((visibility("hidden"), used, no_sanitize("thread"))) void* apenet_next_of_shim(
    [[maybe_unused]] const void* library, [[maybe_unused]] const char* name,
    [[maybe_unused]] const void* caller) {
#if defined(__SANITIZE_THREAD__)
  return nullptr;  // the sanitizer looks up its functions before it can check any of ours
#else
  using apenet::shim::object_of;
  if (std::string_view(name) != "pthread_create") return nullptr;
  const bool is_own = object_of(caller) == object_of(reinterpret_cast<void*>(&apenet_look_up));
  return is_own ? nullptr : reinterpret_cast<void*>(&pthread_create);
#endif
}
}
