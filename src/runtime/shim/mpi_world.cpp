#include "runtime/shim/mpi_world.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/ipc/address_space.hpp"
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

constexpr const char* manager_variable = "PMI_FD";

// The last variable that the launcher's process sends (openmpi_launcher.py).
constexpr std::string_view last_variable{"APENET_END=1\0", 13};

[[noreturn]] void refuse_library(const std::string& why) {
  ipc::Client::refuse(std::string("the MPI library ") + library_file() + " " + why);
}

std::string read_until(int fd, std::string_view end) {
  std::string text;
  char buffer[4096];
  while (!text.ends_with(end)) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

// Ends the process if the program, or what has started it, has asked something by MPI's connection with the
// process manager: the library would take the answer for that to its own question.
[[noreturn]] void refuse_answer(const std::string& answer) {
  constexpr std::size_t most_shown = 80;
  ipc::Client::refuse(
      "on the connection of PMI_FD, which only MPI may use, is an answer to a line that MPI has not sent: "
      "\"" +
      answer.substr(0, std::min(answer.find('\n'), most_shown)) + '"');
}

// The answer begins with `result`.
std::string ask_manager(int fd, const std::string& question, std::string_view result) {
  const std::string line = question + "\n";
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return {};
  std::string answer = read_until(fd, "\n");
  if (answer.empty()) std::_Exit(2);  // the manager has closed the connection, and has told the run why
  answer.pop_back();
  if (!answer.starts_with(result) || answer.find('\n') != std::string::npos) refuse_answer(answer);
  return answer;
}

// What follows `key` in the line.
std::string field(const std::string& line, std::string_view key) {
  const std::size_t at = line.find(key);
  return at == std::string::npos ? std::string{} : line.substr(at + key.size());
}

// The variables of Open MPI, its runtime and its process manager, but for the command that the launcher
// started: that is not the rank's, and contains a process id.
bool is_of_launcher(std::string_view variable) {
  if (variable.starts_with("OMPI_COMMAND=") || variable.starts_with("OMPI_ARGV=")) return false;
  constexpr std::string_view prefixes[] = {"OMPI_", "OPAL_", "ORTE_", "PMIX_", "PRTE_"};
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

void take_over(const std::string& variables) {
  for (std::size_t at = 0; at < variables.size();) {
    const std::string variable = variables.c_str() + at;
    at += variable.size() + 1;
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || !is_of_launcher(variable)) continue;
    setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  for (const char* ours : {manager_variable, "PMI_RANK", "PMI_SIZE"}) unsetenv(ours);
}

// Whether the program asked for libmpich.so.12 and got the library of this package (mpich_name.c).
bool stands_in() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&stands_in), &own) == 0 || own.dli_fname == nullptr) return false;
  const std::string shim = own.dli_fname;
  const std::string name = shim.substr(0, shim.rfind('/') + 1) + "mpich/libmpich.so.12";
  void* handle = dlopen(name.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

// An MPICH with UCX alone, as Debian's. Its ranks would wait for each other in its MPI_Init if one of them
// were refused only after it. The lookups include the libraries that it needs, but not those of another MPI
// in this process. A libfabric that is a part of MPICH exports its functions.
bool has_ucx_alone() {
  if (abi() == Abi::openmpi) return false;
  void* library = dlopen(library_file(), RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return false;
  const bool is_alone =
      host_symbol(library, "ucp_worker_create") != nullptr && host_symbol(library, "fi_getinfo") == nullptr;
  dlclose(library);
  return is_alone;
}

// The first line of what the library says of itself, which it does before MPI_Init, too.
std::string first_line_of_version() {
  std::string text(8192, '\0');  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING, the longest of all libraries
  int length = 0;
  call(profiling_symbol("PMPI_Get_library_version"), text.data(), &length);
  text.resize(std::min(text.find_first_of(std::string{"\n\0", 2}), text.size()));
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

// Tells the library once, before any thread's library uses the descriptor. The answer comes when no rank is
// known to have another one.
void tell_library(int fd) {
  static std::mutex mutex;
  static bool has_told = false;
  const std::lock_guard<std::mutex> guard(mutex);
  if (std::exchange(has_told, true)) return;
  std::string library = first_line_of_version();
  const auto end =
      std::unique(library.begin(), library.end(), [](char a, char b) { return a == ' ' && b == ' '; });
  library.erase(end, library.end());
  ask_manager(fd, "cmd=apenet_library library=" + library, "cmd=apenet_library_result");
}

// The last that the program has looked up.
constinit std::atomic<const void*> second_init{nullptr};

// Called in place of MPI_Init and its kin of a second library.
[[noreturn]] void refuse_second_library() {
  Dl_info info{};
  const char* const file = dladdr(second_init, &info) == 0 ? "" : info.dli_fname;
  refuse_library(std::string("is not the only one of the rank, which has also opened ") + file +
                 ": expected one MPI library in a program");
}

constexpr const char* past_the_network =
    "does not use libfabric, so its messages would go past the simulated network; --mpi mpich puts this "
    "environment's MPICH in its place, unless the program's RPATH leads to it";

}  // namespace

bool has_launcher() {
  const char* host = std::getenv("PMIX_HOSTNAME");
  return host != nullptr && std::strcmp(host, launcher_host_name) == 0;
}

bool is_mpich() {
  return std::getenv(manager_variable) != nullptr;
}

void find_process_manager(const ipc::Client& client) {
  if (client.size() > 1 && has_ucx_alone()) refuse_library(past_the_network);
  if (!is_mpich()) return;
  const int fd = std::atoi(std::getenv(manager_variable));
  if (abi() != Abi::openmpi) {
    tell_library(fd);
    return;
  }
  const std::string answer = ask_manager(fd, std::string("cmd=apenet_launcher library=") + library_file(),
                                         "cmd=apenet_launcher_result");
  const std::string path = field(answer, " path=");
  if (path.empty()) refuse_library("needs its own launcher: " + field(answer, " msg="));
  const int source = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::string variables = source < 0 ? std::string{} : read_until(source, last_variable);
  if (source >= 0) close(source);
  if (variables.empty())
    refuse_library("needs its own launcher, which has ended at its start; its words follow");
  take_over(variables);
}

void refuse_left_answers() {
  if (!is_mpich()) return;
  std::array<char, 256> answer{};
  const ssize_t bytes =
      recv(std::atoi(std::getenv(manager_variable)), answer.data(), answer.size(), MSG_PEEK | MSG_DONTWAIT);
  if (bytes > 0) refuse_answer({answer.data(), static_cast<std::size_t>(bytes)});
}

void require_address_space(const ipc::Client& client, bool has_network) {
  constexpr std::uint64_t least_bytes = std::uint64_t{16} << 20;  // MPICH 5 takes 30 MiB, Open MPI 5 more
  const ipc::AddressSpace space = ipc::address_space();
  const std::uint64_t needed = least_bytes + (has_network ? ipc::Layout{client.size()}.total_bytes() : 0);
  if (space.left_bytes() >= needed) return;
  ipc::Client::refuse("MPI_Init needs mappings of at least " + std::to_string(needed >> 20) +
                      " MiB, for the library and the simulated network, which the limit of the process's "
                      "address space refuses: " +
                      describe(space));
}

void note_end_of_start() {
  ipc::Client* const client = ipc::Client::known();
  if (client == nullptr || client->is_own_block()) return;
  const ipc::Identity& identity = client->block().identity;
  if (identity.initialising == 0 || identity.refused != 0) return;
  constexpr std::uint64_t little_bytes = std::uint64_t{512} << 20;
  const ipc::AddressSpace space = ipc::address_space();
  if (space.left_bytes() >= little_bytes) return;
  client->note_refusal("MPI_Init ended the process, whose address space is limited: " + describe(space));
}

void refuse_second_program() {
  if (!ipc::Client::is_of_run() || ipc::Client::is_fork()) return;
  const ipc::Client* const client = ipc::Client::attached();
  if (client != nullptr && client->is_own_block() && client->header().has_sockets != 0) {
    refuse_library(
        "began MPI in a process that another program has started: with --ip that one is the rank, and a "
        "shell "
        "or wrapper must start the program of MPI by exec");
  }
  refuse_library(
      "began MPI in a second program of the rank: a rank has the MPI of one program, so run each program by "
      "a command of its own");
}

void* second_library_init(void* function) {
  ipc::Client* const client = ipc::Client::attached();
  if (client == nullptr || client->block().identity.initialised == 0) return function;
  second_init = function;
  return reinterpret_cast<void*>(&refuse_second_library);
}

void note_abort(ipc::Client& client, int code) {
  ipc::Identity& identity = client.block().identity;
  identity.abort_code = code;
  identity.aborted.store(1, std::memory_order_release);
}

void exit_aborted(int code) {
  const int status = code & 0xff;
  std::_Exit(status == 0 ? 1 : status);
}

void note_version(ipc::Client& client) {
  std::string text = first_line_of_version();
  if (stands_in()) text += ", in place of the program's libmpich.so.12";
  text.resize(std::min(text.size(), sizeof(ipc::Identity::library) - 1));
  std::memcpy(client.block().identity.library, text.c_str(), text.size() + 1);
}

void check_world(ipc::Client& client) {
  int size = 0;
  call(profiling_symbol("PMPI_Comm_size"), static_cast<Word>(client.notes().library.world.get()), &size);
  const std::string library = std::string("(") + client.block().identity.library + ")";
  if (size != static_cast<int>(client.size())) {
    refuse_library(library + " began a world of size " + std::to_string(size) + ", but the run has " +
                   std::to_string(client.size()) +
                   " ranks: PMI_FD, PMI_RANK and PMI_SIZE must reach the program, and its library must "
                   "use them, as MPICH and Intel MPI do, or be Open MPI");
  }
  if (size > 1 && client.block().identity.used_network == 0) {
    refuse_library(library + " " + past_the_network);
  }
}

}  // namespace apenet::shim
