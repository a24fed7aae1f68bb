// MPICH's shared-memory segments: nothing of a run may be left in /dev/shm, however it ends.
//
// MPICH makes one segment a rank and removes it in MPI_Finalize, which a killed rank never reaches. On a
// simulated machine no other process opens it (every message crosses the network), so its name can go as soon
// as it is made.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

#include "runtime/shim/real.hpp"

namespace {

bool is_mpich_segment(const char* name) {
  return std::strncmp(name, "/mpich_shm_", 11) == 0 && apenet::ipc::Client::attached() != nullptr;
}

}  // namespace

APENET_EXPORT int shm_unlink(const char* name) {
  static const auto real = apenet::shim::next<int (*)(const char*)>("shm_unlink");
  return is_mpich_segment(name) ? 0 : real(name);
}

APENET_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  static const auto real = apenet::shim::next<int (*)(const char*, int, mode_t)>("shm_open");
  static const auto remove = apenet::shim::next<int (*)(const char*)>("shm_unlink");
  const int fd = real(name, flags, mode);
  if (fd >= 0 && (flags & O_CREAT) != 0 && is_mpich_segment(name)) remove(name);
  return fd;
}
