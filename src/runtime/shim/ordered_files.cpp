#include "runtime/shim/ordered_files.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/file_names.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/ordered_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/signal_gate.hpp"
#include "runtime/shim/signal_waits.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;
using ipc::OrderedThread;
using ipc::OrderFile;

OrderFile* find_made(const ipc::FileName& name) {
  if (name.kind == ipc::FileKind::none) return nullptr;
  ipc::OrderFiles& all = thread_order().made_files();
  const std::size_t used = std::min<std::size_t>(all.made, all.files.size());
  OrderFile* const end = all.files.data() + used;
  OrderFile* const found =
      std::find_if(all.files.data(), end, [&name](const OrderFile& one) { return one.made.is(name); });
  return found == end ? nullptr : found;
}

// A check reads /proc, so that one is not repeated before a process has begun, ended or gone to the host.
bool is_held_in_order(OrderFile& file) {
  const std::uint32_t changes = thread_order().process_changes() + 1;
  if (file.checked_at == changes) return true;
  if (is_held_elsewhere(file.made, false)) return false;
  file.checked_at = changes;
  return true;
}

bool takes_signals_in_order() {
  return (ipc::is_single_threaded() || ipc::own_thread_id() == getpid()) && !has_children_outside();
}

bool is_stream(int file) {
  int type = 0;
  socklen_t bytes = sizeof type;
  const int error = host_call(SYS_getsockopt, file, SOL_SOCKET, std::uint64_t{SO_TYPE}, &type,
                              reinterpret_cast<std::uint64_t>(&bytes));
  return error != 0 || type == SOCK_STREAM;
}

}  // namespace

void publish_own_files() {
  for_unpublished_files([](const ipc::MadeFile& made) {
    ipc::OrderFiles& all = thread_order().made_files();
    OrderFile& place = all.files[all.made++ % all.files.size()];
    place.made.kind = ipc::FileKind::none;
    place.checked_at = 0;
    place.made.copy(made);
  });
}

// The other end may be of a process that is in no order, and older than the files.
void forget_passed_files(int socket) {
  if (!thread_order().is_shared()) return;
  publish_own_files();
  if (is_of_order(socket)) return;
  for (OrderFile& file : thread_order().made_files().files) file.made.kind = ipc::FileKind::none;
}

bool is_of_order(int file) {
  if (!thread_order().has_processes()) return false;
  const int error = errno;
  OrderFile* const found = find_made(name_of_file(file));
  // The processes of the order send signals as actions, which their first threads are told of.
  const bool is =
      found != nullptr ? is_held_in_order(*found) : is_signal_file(file) && takes_signals_in_order();
  errno = error;
  return is;
}

// In a process with several threads the host decides which of them takes the signal of a timer: the first
// one, if that does not block it.
OrderedFiles::OrderedFiles(std::span<pollfd> files, std::int64_t until_ps, Use use, const sigset_t* blocked)
    : files_(files), use_(use), blocked_(blocked) {
  ipc::ThreadOrder& order = thread_order();
  own_ = order.has_processes() && order.has_started() && !files.empty() ? ordered_thread() : nullptr;
  const bool has_signals =
      until_ps != at_once && (VirtualTimers::of_process().has_signals() || blocked != nullptr);
  const bool takes_signals = blocked == nullptr && ipc::own_thread_id() == getpid();
  if (own_ == nullptr || (has_signals && !ipc::is_single_threaded() && !takes_signals)) {
    own_ = nullptr;
    return;
  }
  const int error = errno;
  ipc::Client* const client = ipc::Client::attached();
  if (client != nullptr && !ipc::is_single_threaded() && until_ps != at_once)
    VirtualTimers::of_process().keep_time(*client);
  if (blocked_ != nullptr) {
    const sigset_t lets_in = opposite(*blocked_);
    const SignalGate gate(&lets_in);
    await(until_ps);
  } else {
    await(until_ps);
  }
  errno = error;
}

void OrderedFiles::await(std::int64_t until_ps) {
  ipc::ThreadOrder& order = thread_order();
  OrderedThread& own = *std::exchange(own_, nullptr);
  PolledFiles readiness(files_);
  class Check {
   public:
    explicit Check(OrderedThread& thread) : thread_(thread) {
      thread_.signal_at_check = 0;
      thread_.checks_files = true;
    }
    ~Check() {
      thread_.checks_files = false;
      thread_.signal_at_check = 0;
    }
    Check(const Check&) = delete;
    Check& operator=(const Check&) = delete;

   private:
    OrderedThread& thread_;
  };
  const Check check(own);
  if (blocked_ != nullptr && SignalGate::let_in(*blocked_)) {
    outcome_ = Outcome::interrupted;
    return;
  }
  for (;;) {
    order.enter(own);
    const bool is_ready = until_ps == at_once || readiness.is_there();
    if (is_ready && (use_ == Use::check || are_of_order())) {
      if (use_ != Use::check) order.begin_file_change(own);
      own_ = &own;
      outcome_ = Outcome::ready;
      return;
    }
    if (is_ready || !are_of_order()) {
      order.leave(own, !is_in_call());
      return;
    }
    const SignalWait end =
        await_signal(own, order.files(), until_ps, &readiness, use_ == Use::change, blocked_);
    order.leave(own, !is_in_call());
    switch (end) {
      case SignalWait::timed_out:
        outcome_ = Outcome::timed_out;
        return;
      case SignalWait::interrupted:
        outcome_ = Outcome::interrupted;
        return;
      case SignalWait::woken:
      case SignalWait::goes_on:
        continue;
      case SignalWait::of_host:
        return;
    }
  }
}

bool OrderedFiles::are_of_order() const {
  return std::all_of(files_.begin(), files_.end(),
                     [](const pollfd& one) { return one.fd < 0 || is_of_process_or_order(one.fd); });
}

OrderedFiles::~OrderedFiles() {
  if (own_ == nullptr) return;
  const int error = errno;
  if (use_ != Use::check) thread_order().wake(thread_order().files(), every_thread, own_);
  thread_order().leave(*own_, !is_in_call());
  errno = error;
}

std::size_t part_of_write(int file, std::size_t bytes) {
  int held = 0;
  // A pipe whose reader has taken all that was in it has room for as much as it can hold.
  const bool is_empty =
      host_call(SYS_ioctl, file, FIONREAD, reinterpret_cast<std::uint64_t>(&held)) == 0 && held == 0;
  const int room = is_empty ? host_call(SYS_fcntl, file, F_GETPIPE_SZ) : -1;
  return std::min<std::size_t>(bytes, static_cast<std::size_t>(std::max(room, PIPE_BUF)));
}

OrderedWrite ordered_write(int file, std::size_t bytes, bool may_part) {
  OrderedThread* const own = user_of_order(file);
  if (own == nullptr || is_nonblocking(file)) return {};
  const int error = errno;
  const bool has_parts = bytes <= PIPE_BUF || (may_part && is_stream(file));
  errno = error;
  return {.own = own, .has_parts = has_parts};
}

OrderedThread* user_of_order(int file) {
  return is_of_order(file) && host_calls == 0 ? ordered_thread() : nullptr;
}

OrderedThread* closer_of_order(int file) {
  if (!thread_order().in_use() || host_calls > 0) return nullptr;
  const int error = errno;
  const bool is_of_processes = thread_order().has_processes() && find_made(name_of_file(file)) != nullptr;
  const bool is = is_of_processes || (!ipc::is_single_threaded() && is_own_file(file));
  errno = error;
  return is ? ordered_thread() : nullptr;
}

WaitingFileAction::WaitingFileAction(OrderedThread& own) : own_(own) {
  const int error = errno;
  thread_order().enter(own_);
  thread_order().begin_file_change(own_);
  thread_order().begin_file_wait(own_);
  errno = error;
}

WaitingFileAction::~WaitingFileAction() {
  const int error = errno;
  ipc::ThreadOrder& order = thread_order();
  if (!order.end_file_wait(own_)) order.enter(own_);
  order.wake(order.files(), every_thread, &own_);
  order.leave(own_, !is_in_call());
  errno = error;
}

namespace {

// An action that closes files: whoever waits for them may find their end.
class FileClose {
 public:
  explicit FileClose(OrderedThread* own) : own_(own) {
    if (own_ == nullptr) return;
    thread_order().enter(*own_);
    thread_order().begin_file_change(*own_);
  }
  ~FileClose() {
    if (own_ == nullptr) return;
    const int error = errno;
    thread_order().end_file_change(*own_);
    thread_order().wake(thread_order().files(), every_thread, own_);
    thread_order().leave(*own_, !is_in_call());
    errno = error;
  }
  FileClose(const FileClose&) = delete;
  FileClose& operator=(const FileClose&) = delete;

 private:
  OrderedThread* own_;
};

OrderedThread* closer_of_many() {
  return thread_order().has_processes() && host_calls == 0 ? ordered_thread() : nullptr;
}

constinit RealFunction<int (*)(int)> real_close("close");

}  // namespace

APENET_EXPORT int close(int file) {
  const FileClose closing(closer_of_order(file));
  return real_close(file);
}

APENET_EXPORT int dup2(int file, int other) noexcept {
  static const auto real = next<int (*)(int, int)>("dup2");
  const FileClose closing(file == other ? nullptr : closer_of_order(other));
  return real(file, other);
}

APENET_EXPORT int dup3(int file, int other, int flags) noexcept {
  static const auto real = next<int (*)(int, int, int)>("dup3");
  const FileClose closing(file == other ? nullptr : closer_of_order(other));
  return real(file, other, flags);
}

APENET_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  const FileClose closing(closer_of_many());
  return ipc::host_call(SYS_close_range, first, last, static_cast<std::uint64_t>(flags));
}

APENET_EXPORT void closefrom(int first) noexcept {
  static const auto real = next<void (*)(int)>("closefrom");
  const FileClose closing(closer_of_many());
  real(first);
}

APENET_EXPORT int shutdown(int socket, int how) noexcept {
  static const auto real = next<int (*)(int, int)>("shutdown");
  const FileClose closing(closer_of_order(socket));
  return real(socket, how);
}

}  // namespace apenet::shim
