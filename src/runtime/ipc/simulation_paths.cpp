#include "runtime/ipc/simulation_paths.hpp"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/protocol.hpp"

namespace apenet::ipc {
namespace {

void write_path(SimulationPaths::Path& path, std::uint32_t process_id, std::uint32_t descriptor) {
  char* at = path.data();
  char* const end = path.data() + path.size() - 1;
  const auto append = [&at](std::string_view part) { at = std::copy(part.begin(), part.end(), at); };
  append("/proc/");
  at = std::to_chars(at, end, process_id).ptr;
  append("/fd/");
  *std::to_chars(at, end, descriptor).ptr = '\0';
}

}  // namespace

SimulationPaths find_simulation(const char* mapping) {
  SimulationPaths found;
  std::array<std::uint32_t, 6> head{};  // first words of Header, up to images_fd
  static_assert(offsetof(Header, images_fd) == 5 * sizeof(std::uint32_t));
  const int file = host_call(SYS_openat, AT_FDCWD, mapping, O_RDONLY | O_CLOEXEC);
  if (file < 0) return found;
  const int bytes = host_call(SYS_read, file, head.data(), sizeof head);
  host_call(SYS_close, file, 0);
  const auto [magic, version, process_count, simulator_id, parts_fd, images_fd] = head;
  if (bytes != sizeof head || magic != protocol_magic || version != protocol_version) return found;
  found.process_count = process_count;
  write_path(found.parts, simulator_id, parts_fd);
  write_path(found.images, simulator_id, images_fd);
  return found;
}

}  // namespace apenet::ipc
