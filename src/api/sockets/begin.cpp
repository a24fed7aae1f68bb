// Virtual time of a rank with sockets begins with its program. In these it begins later, with the first
// socket: programs that start another one, what they start (a `sleep` in a script is not the rank's program),
// and programs of MPI, unless MPI_Init() comes first.
#include <errno.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "api/sockets/simulated_socket.hpp"

namespace apenet::sockets {
namespace {

// Shells and programs that execute another one in their place, or start it.
bool is_launcher(std::string_view name) {
  constexpr auto names = std::to_array<std::string_view>(
      {"sh", "bash", "dash", "ksh", "zsh", "busybox", "env", "timeout", "nice", "nohup", "stdbuf", "setsid",
       "taskset", "numactl", "time", "xargs", "make"});
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_mpi() {
  const auto is_mpi = [](dl_phdr_info* object, std::size_t /*bytes*/, void* /*data*/) -> int {
    return std::strstr(object->dlpi_name, "/libmpi") != nullptr ? 1 : 0;
  };
  return dl_iterate_phdr(is_mpi, nullptr) != 0;
}

// Whether the run's supervisor has started this process, and no other process of the rank.
bool is_first_process() {
  constexpr std::string_view supervisor = "/apenet-supervisor";
  const std::string link = "/proc/" + std::to_string(getppid()) + "/exe";
  std::array<char, 4096> target{};
  const ssize_t bytes = readlink(link.c_str(), target.data(), target.size());
  return bytes > 0 && std::string_view(target.data(), static_cast<std::size_t>(bytes)).ends_with(supervisor);
}

__attribute__((constructor)) void begin() {
  if (is_first_process() && !is_launcher(program_invocation_short_name) && !has_mpi()) Caller::instance();
}

}  // namespace
}  // namespace apenet::sockets
