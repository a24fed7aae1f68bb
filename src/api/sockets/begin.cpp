// Virtual time of a rank with sockets begins with its program. In these it begins later: in shells and other
// programs that start one, with the first process that they start; in programs of MPI, with the first socket,
// unless MPI_Init() comes first.
#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "api/sockets/random_numbers.hpp"
#include "api/sockets/simulated_socket.hpp"
#include "api/sockets/streams.hpp"

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

bool begins_with_a_process() {
  return is_launcher(program_invocation_short_name) && is_first_process();
}

// The program has been executed by a process that may have had sockets.
void adopt_files() {
  const ipc::Header* const machine = ipc::Client::header_of_run();
  if (machine == nullptr || machine->has_sockets == 0) return;
  if (ipc::Client::of_rank() == nullptr && ipc::Client::attached() == nullptr) return;
  Caller* const caller = Caller::instance();
  if (caller == nullptr) return;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* const entry = readdir(folder)) {
    const int file = std::atoi(entry->d_name);
    if (entry->d_name[0] == '.' || file == dirfd(folder)) continue;
    if (const auto socket = named_socket(file)) add_file(file, *socket);
  }
  closedir(folder);
  caller->keep_only(known_numbers());
  for (const int file : {STDIN_FILENO, STDOUT_FILENO}) take_over_standard_stream(file);
}

__attribute__((constructor)) void begin() {
  pthread_atfork(nullptr, nullptr, [] {
    note_fork();
    Caller::forget_instance();
  });
  const bool is_first = is_first_process();
  if (is_first && !is_launcher(program_invocation_short_name) && !has_mpi()) Caller::instance();
  if (!is_first || Caller::known() != nullptr) adopt_files();
  draw_process_numbers();
}

}  // namespace

// The shim calls these (shim/child_processes.hpp).
APENET_SOCKETS_EXPORT void apenet_socket_process_begins() {
  if (Caller::known() == nullptr && begins_with_a_process()) Caller::instance();
}

APENET_SOCKETS_EXPORT void apenet_socket_process_started(std::uint32_t place, std::uint32_t process) {
  if (Caller* const caller = Caller::known()) caller->share_with(place, process);
}

APENET_SOCKETS_EXPORT void apenet_socket_process_ends() {
  if (is_vfork_child() || known_numbers().empty()) return;
  if (Caller* const caller = Caller::instance()) {
    for (const std::uint32_t number : known_numbers()) caller->close(number);
  }
}

}  // namespace apenet::sockets
