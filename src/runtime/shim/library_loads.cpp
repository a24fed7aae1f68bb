// What dlopen() and dlmopen() note before they call the C library's functions (caller_stubs.cpp): that the
// program checks for a library's file (outside_waits.hpp). What is noted is found out before the call.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/checked_calls.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// A name without a folder is searched for in many: whether it is there is not known.
void note_library_file(const char* name) {
  struct stat status {};
  if (std::strchr(name, '/') == nullptr) {
    note_file_check(AT_FDCWD, name, Presence::refused, 0);
  } else if (ipc::host_call(SYS_newfstatat, AT_FDCWD, name, reinterpret_cast<std::uint64_t>(&status)) == 0) {
    note_file_check(AT_FDCWD, name, Presence::there, state_of(status));
  } else {
    note_file_check(AT_FDCWD, name, Presence::absent, ENOENT);
  }
}

bool counts_load(const char* name, int flags) {
  return name != nullptr && name[0] != '\0' && (flags & RTLD_NOLOAD) == 0 && counts_checks();
}

}  // namespace
}  // namespace apenet::shim

extern "C" {
// Each returns the C library's function, to which its stub jumps.
__attribute__((visibility("hidden"), used)) void* apenet_begin_dlopen(const char* name, int flags) {
  using apenet::shim::next;
  static const auto real = next<void* (*)(const char*, int)>("dlopen");
  if (apenet::shim::counts_load(name, flags)) {
    const int error = errno;
    if (void* const loaded = real(name, RTLD_LAZY | RTLD_NOLOAD)) {
      next<int (*)(void*)>("dlclose")(loaded);
      apenet::shim::note_file_found(AT_FDCWD, name);
    } else {
      apenet::shim::note_library_file(name);
    }
    errno = error;
  }
  return reinterpret_cast<void*>(real.get());
}
__attribute__((visibility("hidden"), used)) void* apenet_begin_dlmopen(Lmid_t /*space*/, const char* name,
                                                                       int flags) {
  static void* const real = apenet::shim::next_symbol("dlmopen");
  if (apenet::shim::counts_load(name, flags)) {
    const int error = errno;
    apenet::shim::note_library_file(name);
    errno = error;
  }
  return real;
}
}

// The library had been found.
APENET_EXPORT int dlclose(void* library) noexcept {
  static const auto real = apenet::shim::next<int (*)(void*)>("dlclose");
  apenet::shim::drop_check();
  return real(library);
}
