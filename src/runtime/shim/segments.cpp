// Keeps the shared-memory segments of MPI libraries out of /dev/shm, which is limited to 64 MiB in containers
// and where killed ranks would leave them.
//
// MPICH creates a segment of about 1 MiB per rank; Open MPI tests whether it could create one. On a simulated
// machine no other process opens it, because every message crosses the network. So anonymous memory is
// enough.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

#include "runtime/shim/real.hpp"

namespace {

bool is_of_mpi(const char* name) {
  const bool named = std::strncmp(name, "/mpich_shm_", 11) == 0 || std::strncmp(name, "/open_mpi.", 10) == 0;
  return named && apenet::ipc::Client::attached() != nullptr;
}

}  // namespace

APENET_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  static const auto real = apenet::shim::next<int (*)(const char*, int, mode_t)>("shm_open");
  const bool makes = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  return makes && is_of_mpi(name) ? memfd_create(name + 1, MFD_CLOEXEC) : real(name, flags, mode);
}

APENET_EXPORT int shm_unlink(const char* name) {
  static const auto real = apenet::shim::next<int (*)(const char*)>("shm_unlink");
  return is_of_mpi(name) ? 0 : real(name);
}
