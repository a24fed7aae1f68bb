// Keeps the shared-memory segments of MPI libraries out of /dev/shm, which is limited to 64 MiB in containers
// and where killed ranks would leave them.
//
// MPICH creates a segment of about 1 MiB per rank; Open MPI tests whether it could create one. On a simulated
// machine no other process opens it, because every message crosses the network. So anonymous memory is
// enough.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "runtime/shim/nameless_memory.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/real.hpp"

namespace {

bool is_of_mpi(const char* name) {
  const bool named = std::strncmp(name, "/mpich_shm_", 11) == 0 || std::strncmp(name, "/open_mpi.", 10) == 0;
  return named && apenet::ipc::Client::attached() != nullptr;
}

}  // namespace

// A sandbox may refuse the call that makes such memory. A file of shared memory whose name is removed at once
// does as well.
int apenet::shim::make_nameless_memory(const char* what) {
  const int fd = memfd_create(what, MFD_CLOEXEC);
  if (fd >= 0) return fd;
  static const auto open_segment = next<int (*)(const char*, int, mode_t)>("shm_open");
  static const auto unlink_segment = next<int (*)(const char*)>("shm_unlink");
  static std::atomic<unsigned> count{0};
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "/apenet-%d-%u", static_cast<int>(getpid()), count++);
  const int segment = open_segment(name.data(), O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR);
  if (segment >= 0) unlink_segment(name.data());
  return segment;
}

APENET_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  static const auto real = apenet::shim::next<int (*)(const char*, int, mode_t)>("shm_open");
  const bool makes = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  if (makes && is_of_mpi(name)) return apenet::shim::make_nameless_memory(name + 1);
  const int segment = real(name, flags, mode);
  if ((flags & O_CREAT) == 0) apenet::shim::note_object_check(name, segment >= 0);
  if (makes && segment >= 0) apenet::shim::note_made(apenet::shim::NamedObject::segment, name);
  return segment;
}

APENET_EXPORT int shm_unlink(const char* name) {
  static const auto real = apenet::shim::next<int (*)(const char*)>("shm_unlink");
  if (is_of_mpi(name)) return 0;
  const int result = real(name);
  if (result == 0) apenet::shim::note_removed(apenet::shim::NamedObject::segment, name);
  return result;
}
