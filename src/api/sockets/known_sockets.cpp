#include "api/sockets/known_sockets.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "api/sockets/simulated_socket.hpp"
#include "runtime/ipc/host_call.hpp"

namespace apenet::sockets {
namespace {

constexpr int most_files = 65536;

// By descriptor: the number of its socket + 1, or 0. Asked in every call of the program for a file.
std::array<std::atomic<std::uint32_t>, most_files>& numbers() {
  static constinit std::array<std::atomic<std::uint32_t>, most_files> value{};
  return value;
}

struct Shared {
  KnownSocket socket;
  int files = 0;
};

struct Known {
  long process_id = ipc::host_call(SYS_getpid, 0, 0);
  std::uint32_t stand_ins = 0;  // that it has made
  SpinLock mutex;
  std::map<std::uint32_t, Shared> sockets;  // by number
  std::set<std::string> warned;
};

// The abstract name of a stand-in: no two of a host have the same.
struct StandInName {
  std::array<char, 16> mark{'\0', 'a', 'p', 'e', 'n', 'e', 't', '-', 's', 'o', 'c', 'k', 'e', 't'};
  std::uint32_t rank = 0;
  std::uint32_t number = 0;
  std::uint32_t is_datagram = 0;
  std::uint32_t made_by = 0;  // the process
  std::uint32_t count = 0;    // how many it has made before, and this
};

// Never destroyed: programs close files in atexit handlers.
Known& known() {
  static Known& value = *new Known;
  return value;
}

std::uint32_t own_rank() {
  Caller* const caller = Caller::instance();
  return caller == nullptr ? UINT32_MAX : caller->client().rank();
}

// Without a name, programs that inherit it do not know the socket.
void name_stand_in(int file, const KnownSocket& socket) {
  StandInName name;
  name.rank = own_rank();
  name.number = socket.number;
  name.is_datagram = socket.is_datagram ? 1 : 0;
  {
    const std::scoped_lock lock(known().mutex);
    name.made_by = static_cast<std::uint32_t>(known().process_id);
    name.count = ++known().stand_ins;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, &name, sizeof name);
  static const auto real = next<decltype(&::bind)>("bind");
  const int error = errno;
  real(file, reinterpret_cast<const sockaddr*>(&address), offsetof(sockaddr_un, sun_path) + sizeof name);
  errno = error;
}

}  // namespace

void* next_symbol(const char* name) {
  return dlsym(RTLD_NEXT, name);
}

bool is_vfork_child() {
  return ipc::host_call(SYS_getpid, 0, 0) != known().process_id;
}

bool is_simulated(int file) {
  return file >= 0 && file < most_files &&
         numbers()[static_cast<std::size_t>(file)].load(std::memory_order_relaxed) != 0;
}

std::optional<KnownSocket> known_socket(int file) {
  if (!is_simulated(file)) return std::nullopt;
  const std::scoped_lock lock(known().mutex);
  const auto found = known().sockets.find(numbers()[static_cast<std::size_t>(file)] - 1);
  if (found == known().sockets.end()) return std::nullopt;
  return found->second.socket;
}

int add_stand_in(const KnownSocket& socket, int flags) {
  static const auto real = next<int (*)(int, int, int)>("socket");
  const int file = real(AF_UNIX, SOCK_STREAM | flags, 0);
  if (file < 0) return file;
  if (file >= most_files) {
    next<int (*)(int)>("close")(file);
    errno = EMFILE;
    return -1;
  }
  name_stand_in(file, socket);
  const std::scoped_lock lock(known().mutex);
  known().sockets[socket.number] = {socket, 1};
  numbers()[static_cast<std::size_t>(file)] = socket.number + 1;
  return file;
}

std::optional<KnownSocket> named_socket(int file) {
  sockaddr_un name{};
  socklen_t length = sizeof name;
  static const auto real = next<decltype(&::getsockname)>("getsockname");
  if (real(file, reinterpret_cast<sockaddr*>(&name), &length) != 0 || name.sun_family != AF_UNIX) return {};
  StandInName read{};
  constexpr std::size_t begin = offsetof(sockaddr_un, sun_path);
  if (length != begin + sizeof read) return {};
  std::memcpy(&read, name.sun_path, sizeof read);
  if (read.mark != StandInName{}.mark) return {};
  if (read.rank != own_rank()) {
    warn("a descriptor of a socket of another rank has come: only the processes of one rank can pass them");
    return {};
  }
  return KnownSocket{.number = read.number, .is_datagram = read.is_datagram != 0};
}

void add_file(int file, const KnownSocket& socket) {
  const std::scoped_lock lock(known().mutex);
  Shared& shared = known().sockets[socket.number];
  shared.socket = socket;
  ++shared.files;
  numbers()[static_cast<std::size_t>(file)] = socket.number + 1;
}

std::vector<std::uint32_t> known_numbers() {
  const std::scoped_lock lock(known().mutex);
  std::vector<std::uint32_t> found;
  for (const auto& [number, shared] : known().sockets) found.push_back(number);
  return found;
}

void note_fork() {
  known().mutex.unlock();  // the thread that may have had it is not there
  known().process_id = ipc::host_call(SYS_getpid, 0, 0);
}

void note_duplicate(int file, int other) {
  if (!is_simulated(file) || other < 0 || other >= most_files || is_vfork_child()) return;
  const std::scoped_lock lock(known().mutex);
  const std::uint32_t number = numbers()[static_cast<std::size_t>(file)];
  numbers()[static_cast<std::size_t>(other)] = number;
  ++known().sockets[number - 1].files;
}

void set_limits(int file, std::int64_t receive_most_ps, std::int64_t send_most_ps) {
  const std::scoped_lock lock(known().mutex);
  KnownSocket& socket = known().sockets[numbers()[static_cast<std::size_t>(file)] - 1].socket;
  socket.receive_most_ps = receive_most_ps;
  socket.send_most_ps = send_most_ps;
}

std::optional<KnownSocket> forget(int file) {
  if (!is_simulated(file)) return std::nullopt;
  const std::scoped_lock lock(known().mutex);
  const std::uint32_t number = numbers()[static_cast<std::size_t>(file)].exchange(0) - 1;
  const auto found = known().sockets.find(number);
  if (found == known().sockets.end() || --found->second.files > 0) return std::nullopt;
  const KnownSocket socket = found->second.socket;
  known().sockets.erase(found);
  return socket;
}

bool is_nonblocking(int file) {
  return (ipc::host_call(SYS_fcntl, file, F_GETFL) & O_NONBLOCK) != 0;
}

void warn(const std::string& text) {
  {
    const std::scoped_lock lock(known().mutex);
    if (!known().warned.insert(text).second) return;
  }
  Caller* const caller = Caller::known();
  if (caller != nullptr && !caller->board().note_warning(std::hash<std::string>()(text) | 1U)) return;
  const std::string line = "apenet: warning: " + text + "\n";
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  static_cast<void>(real(STDERR_FILENO, line.data(), line.size()));
}

}  // namespace apenet::sockets
