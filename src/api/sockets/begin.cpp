// Virtual time of a rank with sockets begins with its program, unless that is one that starts the program, or
// an MPI program, whose time begins with MPI_Init() or its first socket.
#include <errno.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
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

__attribute__((constructor)) void begin() {
  if (!is_launcher(program_invocation_short_name) && !has_mpi()) Caller::instance();
}

}  // namespace
}  // namespace apenet::sockets
