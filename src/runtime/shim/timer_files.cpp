#include "runtime/shim/timer_files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/family.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;

// A program may have closed it, and the host given its number to something else.
bool is_timer(int file) {
  std::array<char, 32> path{"/proc/self/fd/"};
  char* const begin = path.data() + std::strlen(path.data());
  *std::to_chars(begin, path.data() + path.size() - 1, file).ptr = '\0';
  std::array<char, 64> name{};
  const int bytes = ipc::read_link(path.data(), name.data(), name.size());
  return bytes > 0 &&
         std::string_view(name.data(), static_cast<std::size_t>(bytes)) == "anon_inode:[timerfd]";
}

// A handler of this signal lets the call that it has interrupted begin again.
bool restarts(int signal) {
  struct sigaction action {};
  return signal > 0 && sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_RESTART) != 0;
}

// A process that has inherited the file may have read the ends.
void forget_ends_read_elsewhere(VirtualTimer& timer) {
  pollfd file{.fd = timer.host, .events = POLLIN, .revents = 0};
  if (timer.ends != 0 && has_children() && ipc::poll_now(&file, 1) == 0)
    VirtualTimers::of_process().take_ends(timer);
}

}  // namespace

VirtualTimer* timer_of_file(int file) {
  VirtualTimers& timers = VirtualTimers::of_process();
  if (!timers.has_files()) return nullptr;
  VirtualTimer* const timer = timers.find_file(file);
  if (timer == nullptr || clock_client() == nullptr) return nullptr;
  const int error = errno;
  const bool is_open = is_timer(file);
  errno = error;
  if (is_open) return timer;
  timers.drop(*timer);
  return nullptr;
}

bool await_timer_file(VirtualTimer& timer) {
  ipc::Client* client = clock_client();
  if (client == nullptr || (host_call(SYS_fcntl, timer.host, F_GETFL) & O_NONBLOCK) != 0) return true;
  if (client->has_due_timer()) apenet_timers_due();
  forget_ends_read_elsewhere(timer);
  while (timer.ends == 0 && timer.due_ps != VirtualTimer::never_ps && !has_children_outside()) {
    VirtualTimers& timers = VirtualTimers::of_process();
    if (sleep_ps(*client, timer.due_ps - now_ps(*client)) && !restarts(timers.last_signal())) {
      errno = EINTR;
      return false;
    }
  }
  return true;
}

void read_timer_ends(VirtualTimer& timer, void* bytes) {
  const std::uint64_t ends = VirtualTimers::of_process().take_ends(timer);
  if (ends > 0) std::memcpy(bytes, &ends, sizeof ends);
}

}  // namespace apenet::shim
