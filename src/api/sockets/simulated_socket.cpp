#include "api/sockets/simulated_socket.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

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
  const long process_id = ipc::host_call(SYS_getpid, 0, 0);
  SpinLock mutex;
  std::map<std::uint32_t, Shared> sockets;  // by number
  std::set<std::string> warned;
};

// Never destroyed: programs close files in atexit handlers.
Known& known() {
  static Known& value = *new Known;
  return value;
}

}  // namespace

void* next_symbol(const char* name) {
  return dlsym(RTLD_NEXT, name);
}

bool is_vfork_child() {
  return !ipc::Client::is_fork() && ipc::host_call(SYS_getpid, 0, 0) != known().process_id;
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
  const std::scoped_lock lock(known().mutex);
  known().sockets[socket.number] = {socket, 1};
  numbers()[static_cast<std::size_t>(file)] = socket.number + 1;
  return file;
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
  const std::string line = "apenet: warning: " + text + "\n";
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  static_cast<void>(real(STDERR_FILENO, line.data(), line.size()));
}

Caller* Caller::instance() {
  static std::atomic<Caller*> known_caller{nullptr};
  if (Caller* const caller = known_caller.load(std::memory_order_acquire)) {
    if (ipc::Client::is_fork()) {
      warn("a process that a rank has forked uses a socket: only the rank itself can, by now");
      return nullptr;
    }
    return caller;
  }
  const ipc::Header* const machine = ipc::Client::machine();
  if (machine == nullptr || machine->has_sockets == 0) return nullptr;
  ipc::Client* const client = ipc::Client::instance();
  if (client == nullptr) return nullptr;
  const ipc::Inside inside(*client);
  if (Caller* const caller = known_caller.load()) return caller;
  // The process may end at any time: closing what it has open is the simulator's.
  if (!client->join()) return nullptr;
  client->leave();
  auto* const caller = new Caller(*client);
  known_caller.store(caller, std::memory_order_release);
  return caller;
}

void Caller::take(const ipc::Event& event) noexcept {
  const auto found = std::find_if(expected_.begin(), expected_.end(),
                                  [&event](const Expected* one) { return one->message == event.message; });
  if (found == expected_.end()) return;
  std::memcpy(&(*found)->answer, event.inline_data, sizeof(ipc::SocketAnswer));
  (*found)->has_come = true;
  expected_.erase(found);
}

std::uint64_t Caller::post(const ipc::SocketCall& call, const void* buffer, std::size_t bytes) {
  ipc::Request request;
  request.verb = ipc::RequestVerb::socket;
  request.target = card_.rank();
  request.local_address = reinterpret_cast<std::uint64_t>(buffer);
  request.bytes = static_cast<std::int64_t>(bytes);
  request.inline_length = sizeof call;
  std::memcpy(request.inline_data, &call, sizeof call);
  return card_.post(request);
}

ipc::SocketAnswer Caller::call(std::string_view name, const ipc::SocketCall& call, const void* buffer,
                               std::size_t bytes, const CallCost& cost, const std::function<bool()>& stops) {
  const ipc::Inside inside(card_.client());
  if (card_.has_left()) return {.result = -ENETDOWN};
  card_.charge(cost.before);
  const std::int64_t began_ps = card_.now_ps();
  Expected expected;
  expected_.push_back(&expected);
  expected.message = post(call, buffer, bytes);
  bool is_cancelled = false;
  const auto is_over = [&] {
    if (!expected.has_come && !is_cancelled && stops && stops()) {
      is_cancelled = true;
      post({.verb = ipc::SocketVerb::cancel, .value = static_cast<std::int64_t>(expected.message)}, nullptr,
           0);
    }
    return expected.has_come;
  };
  card_.wait_until(name, is_over);
  const std::int64_t left_ps = began_ps + costs().system_call.ps() - card_.now_ps();
  if (left_ps > 0 && !cost.is_further_part) card_.charge(Time::from_ps(left_ps));
  if (cost.after) card_.charge(cost.after(expected.answer.result));
  return expected.answer;
}

std::int64_t returned(const ipc::SocketAnswer& answer) {
  if (answer.result >= 0) return answer.result;
  errno = static_cast<int>(-answer.result);
  return -1;
}

}  // namespace apenet::sockets
