#include "runtime/ipc/address_space.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "runtime/ipc/host_call.hpp"

namespace apenet::ipc {
namespace {

constexpr std::uint64_t kib = 1024;

// The first number of the file is the process's size in pages.
std::uint64_t used_address_bytes() {
  std::array<char, 64> text{};
  const int file = host_call(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const int bytes = host_call(SYS_read, file, text.data(), text.size());
  host_call(SYS_close, file, 0);
  std::uint64_t pages = 0;
  std::from_chars(text.data(), text.data() + (bytes < 0 ? 0 : bytes), pages);
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

AddressSpace address_space() {
  rlimit limit{};
  AddressSpace space;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return space;
  space.limit_bytes = limit.rlim_cur;
  space.used_bytes = used_address_bytes();
  return space;
}

std::string describe(const AddressSpace& space) {
  if (space.limit_bytes == AddressSpace::unlimited) return "see the memory of the host or container";
  const std::string limit = std::to_string(space.limit_bytes / kib);
  return "RLIMIT_AS is " + limit + " KiB (ulimit -v " + limit + "), of which " +
         std::to_string(space.used_bytes / kib) + " KiB are in use";
}

}  // namespace apenet::ipc
