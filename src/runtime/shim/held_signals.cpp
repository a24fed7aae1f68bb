#include "runtime/shim/held_signals.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/shim/child_processes.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using Action = struct sigaction;
using KernelSet = std::uint64_t;  // shorter than the C library's
constexpr KernelSet every_signal = ~KernelSet{0};

constinit RealFunction<int (*)(int, const Action*, Action*)> real_sigaction("sigaction");
constinit RealFunction<sighandler_t (*)(int, sighandler_t)> real_signal("signal");
constinit RealFunction<sighandler_t (*)(int, sighandler_t)> real_sysv_signal("__sysv_signal");
constinit RealFunction<sighandler_t (*)(int, sighandler_t)> real_sigset("sigset");

// A held signal. Only sigaction() writes the program's handler. A fault in one thread while another sets the
// handler is a race of the program, as it is without the shim.
struct Held {
  std::atomic<SignalAnswer> answer{nullptr};
  Action theirs{};
};

constexpr std::size_t most_signals = 65;

struct HeldSignals {
  std::array<Held, most_signals> by_number{};
  std::atomic<KernelSet> set{0};
};

HeldSignals& held() {
  // Needs no guard: the thread sanitizer calls sigaction() before it can handle one.
  static constinit HeldSignals value{};
  return value;
}

KernelSet without_held(KernelSet set) {
  return set & ~held().set.load(std::memory_order_relaxed);
}

sigset_t without_held(sigset_t set) {
  KernelSet words = 0;
  std::memcpy(&words, &set, sizeof words);
  words = without_held(words);
  std::memcpy(&set, &words, sizeof words);
  return set;
}

// As dl_find_object of <dlfcn.h> since glibc 2.35, with room for what may follow.
struct CodeObject {
  unsigned long long flags;
  void* begin;
  void* end;
  const link_map* map;
  std::array<void*, 12> rest;
};
using FindCodeObject = int (*)(void*, CodeObject*);
constinit FindCodeObject find_code_object = nullptr;

__attribute__((constructor)) void look_up_find_code_object() {
  find_code_object = next<FindCodeObject>("_dl_find_object").get();
}

// The path of the object with the handler; nullptr: it is in none. A program may set handlers in handlers,
// and while another thread loads a library, so this does not take the loader's lock if the C library can do
// without.
const char* object_of_handler(sighandler_t handler) {
  CodeObject found{};
  Dl_info image{};
  if (find_code_object != nullptr)
    return find_code_object(reinterpret_cast<void*>(handler), &found) == 0 ? found.map->l_name : nullptr;
  return dladdr(reinterpret_cast<const void*>(handler), &image) == 0 ? nullptr : image.dli_fname;
}

// MPICH and UCX set handlers in each program. They neither jump out of a wait, nor does the program expect
// that they end one.
bool is_of_mpi_library(sighandler_t handler) {
  const char* const object = object_of_handler(handler);
  if (object == nullptr) return false;
  const std::string_view path = object;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  constexpr std::array<std::string_view, 4> libraries{"libmpi", "libmpich", "libucs", "libopen-pal"};
  return std::any_of(libraries.begin(), libraries.end(), [file](std::string_view name) {
    const std::string_view rest = file.substr(std::min(name.size(), file.size()));
    return file.substr(0, name.size()) == name && (rest.starts_with('.') || rest.starts_with('-'));
  });
}

// While a handler is set: the order of threads knows of it no later than the host, and forgets it no earlier.
class HandlerNote {
 public:
  HandlerNote(int number, sighandler_t handler) : number_(number), handler_(handler) {
    const bool is_one = handler != SIG_DFL && handler != SIG_IGN && handler != SIG_HOLD;
    if (is_one && !is_of_mpi_library(handler)) thread_order().note_handler(number, true);
  }
  ~HandlerNote() {
    if (handler_ == SIG_DFL || handler_ == SIG_IGN) thread_order().note_handler(number_, false);
  }
  HandlerNote(const HandlerNote&) = delete;
  HandlerNote& operator=(const HandlerNote&) = delete;

 private:
  int number_;
  sighandler_t handler_;
};

// Does what the kernel would do with the signal if the program's handler were installed.
void pass_on(int number, siginfo_t* info, void* context) {
  Held& own = held().by_number[static_cast<std::size_t>(number)];
  const Action theirs = own.theirs;
  const bool was_sent = info->si_code <= 0;
  if (theirs.sa_handler == SIG_IGN && was_sent) return;
  if (theirs.sa_handler == SIG_DFL || theirs.sa_handler == SIG_IGN) {
    // A fault recurs, and ends the process; what does not recur is sent again.
    const Action end{};
    real_sigaction(number, &end, static_cast<Action*>(nullptr));
    if (was_sent || number != SIGSEGV) raise(number);
    return;
  }
  if ((theirs.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) own.theirs = Action{};
  KernelSet mask = 0;
  std::memcpy(&mask, &theirs.sa_mask, sizeof mask);
  // The kernel restores the mask when we return.
  const std::size_t bytes = sizeof mask;
  ipc::host_call(SYS_rt_sigprocmask, SIG_BLOCK, &mask, 0,
                 reinterpret_cast<const void*>(bytes));  // NOLINT(performance-no-int-to-ptr)
  if ((theirs.sa_flags & SA_SIGINFO) != 0) {
    theirs.sa_sigaction(number, info, context);
  } else {
    theirs.sa_handler(number);
  }
}

int set_action(int number, const Action* action, Action* before) {
  if (action == nullptr && !is_held(number)) return real_sigaction(number, action, before);
  Action wanted{};
  if (action != nullptr) {
    wanted = *action;
    wanted.sa_mask = without_held(wanted.sa_mask);
    const HandlerNote note(number, wanted.sa_handler);
    if (!is_held(number)) return real_sigaction(number, &wanted, before);
  }
  Action& theirs = held().by_number[static_cast<std::size_t>(number)].theirs;
  if (before != nullptr) *before = theirs;
  if (action != nullptr) theirs = wanted;
  return 0;
}

// A held signal's.
sighandler_t set_handler(int number, sighandler_t handler, int flags) {
  Action action{};
  Action before{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  set_action(number, &action, &before);
  return before.sa_handler;
}

template <typename Real>
int set_mask(Real& real, int how, const sigset_t* set, sigset_t* before) {
  if (set != nullptr) note_mask_change(how, *set);
  if (held().set.load(std::memory_order_relaxed) == 0 || set == nullptr || how == SIG_UNBLOCK)
    return real(how, set, before);
  const sigset_t allowed = without_held(*set);
  return real(how, &allowed, before);
}

constinit RealFunction<int (*)(int, const sigset_t*, sigset_t*)> real_sigprocmask("sigprocmask");
constinit RealFunction<int (*)(int, const sigset_t*, sigset_t*)> real_thread_mask("pthread_sigmask");

const void* set_bytes() {
  const std::size_t bytes = sizeof(KernelSet);
  return reinterpret_cast<const void*>(bytes);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

KernelAction kernel_action(int number) {
  KernelAction action{};
  constexpr const KernelAction* unchanged = nullptr;
  ipc::host_call(SYS_rt_sigaction, number, unchanged, reinterpret_cast<std::uint64_t>(&action), set_bytes());
  return action;
}

bool set_kernel_action(int number, const KernelAction& action) {
  return ipc::host_call(SYS_rt_sigaction, number, &action, 0, set_bytes()) == 0;
}

bool is_held(int number) {
  return number > 0 && static_cast<std::size_t>(number) < most_signals &&
         held().by_number[static_cast<std::size_t>(number)].answer.load(std::memory_order_relaxed) != nullptr;
}

void let_held_signals_in() {
  const KernelSet set = held().set;
  const std::size_t bytes = sizeof set;
  ipc::host_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, 0,
                 reinterpret_cast<const void*>(bytes));  // NOLINT(performance-no-int-to-ptr)
}

void let_only_held_signals_in() {
  const KernelSet set = without_held(every_signal);
  ipc::host_call(SYS_rt_sigprocmask, SIG_SETMASK, &set, 0, set_bytes());
}

void let_signals_in(const sigset_t& mask) {
  ipc::host_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, set_bytes());
}

void answer_held_signal(int number, siginfo_t* info, void* context) {
  const int error = errno;
  const SignalAnswer answer = held().by_number[static_cast<std::size_t>(number)].answer;
  if (!answer(*info, *static_cast<ucontext_t*>(context))) pass_on(number, info, context);
  errno = error;
}

void hold_signal(int number, SignalAnswer answer, const DirectHandler& handler) {
  if (is_held(number)) return;
  Held& own = held().by_number[static_cast<std::size_t>(number)];
  held().set |= KernelSet{1} << static_cast<unsigned>(number - 1);
  // Handlers that the program has set block it no more.
  for (int other = 1; other < static_cast<int>(most_signals); ++other) {
    Action action{};
    if (other == number || real_sigaction(other, static_cast<const Action*>(nullptr), &action) != 0) continue;
    const sigset_t before = action.sa_mask;
    action.sa_mask = without_held(action.sa_mask);
    if (std::memcmp(&before, &action.sa_mask, sizeof(KernelSet)) != 0)
      real_sigaction(other, &action, static_cast<Action*>(nullptr));
  }
  own.answer = answer;
  Action ours{};
  ours.sa_sigaction = answer_held_signal;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  if (handler.restorer == 0) {
    real_sigaction(number, &ours, &own.theirs);
  } else {
    const KernelAction direct{.handler = reinterpret_cast<std::uintptr_t>(handler.entry),
                              .flags = static_cast<std::uint64_t>(ours.sa_flags) | has_restorer,
                              .restorer = handler.restorer,
                              .mask = without_held(every_signal)};
    real_sigaction(number, static_cast<const Action*>(nullptr), &own.theirs);
    set_kernel_action(number, direct);
  }
  let_held_signals_in();
}

long change_action(int number, const void* action, void* before) {
  KernelAction wanted{};
  if (action != nullptr && !ipc::copy_in(&wanted, action, sizeof wanted)) return -EFAULT;
  wanted.mask = without_held(wanted.mask);
  if (!is_held(number)) {
    const auto set = [&](const KernelAction* own) -> long {
      const int result =
          ipc::host_call(SYS_rt_sigaction, number, own, reinterpret_cast<std::uint64_t>(before), set_bytes());
      return result < 0 ? -errno : result;
    };
    if (action == nullptr) return set(nullptr);
    const auto handler = reinterpret_cast<sighandler_t>(wanted.handler);  // NOLINT(performance-no-int-to-ptr)
    const HandlerNote note(number, handler);
    return set(&wanted);
  }
  Action& theirs = held().by_number[static_cast<std::size_t>(number)].theirs;
  if (before != nullptr) {
    KernelAction shown{.handler = reinterpret_cast<std::uintptr_t>(theirs.sa_handler),
                       .flags = static_cast<std::uint64_t>(theirs.sa_flags),
                       .restorer = reinterpret_cast<std::uintptr_t>(theirs.sa_restorer),
                       .mask = 0};
    std::memcpy(&shown.mask, &theirs.sa_mask, sizeof shown.mask);
    if (!ipc::copy_out(before, &shown, sizeof shown)) return -EFAULT;
  }
  if (action == nullptr) return 0;
  theirs = Action{};
  // NOLINTBEGIN(performance-no-int-to-ptr): addresses of the program's functions
  theirs.sa_handler = reinterpret_cast<sighandler_t>(wanted.handler);
  theirs.sa_restorer = reinterpret_cast<void (*)()>(wanted.restorer);
  // NOLINTEND(performance-no-int-to-ptr)
  theirs.sa_flags = static_cast<int>(wanted.flags);
  std::memcpy(&theirs.sa_mask, &wanted.mask, sizeof wanted.mask);
  return 0;
}

long change_mask(int how, const void* set, void* before, sigset_t& mask) {
  KernelSet now = 0;
  std::memcpy(&now, &mask, sizeof now);
  const KernelSet shown = now;
  KernelSet change = 0;
  if (set != nullptr && !ipc::copy_in(&change, set, sizeof change)) return -EFAULT;
  const auto result = [&] {
    return before == nullptr || ipc::copy_out(before, &shown, sizeof shown) ? 0L : -EFAULT;
  };
  if (set == nullptr) return result();
  switch (how) {
    case SIG_BLOCK:
      now |= change;
      break;
    case SIG_UNBLOCK:
      now &= ~change;
      break;
    case SIG_SETMASK:
      now = change;
      break;
    default:
      return -EINVAL;
  }
  // The C library interrupts its threads by 32 and 33; SIGKILL and SIGSTOP the kernel removes itself.
  now = without_held(now);
  std::memcpy(&mask, &now, sizeof now);
  return result();
}

APENET_EXPORT int sigaction(int number, const struct sigaction* action, struct sigaction* before) noexcept {
  return set_action(number, action, before);
}

APENET_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  const HandlerNote note(number, handler);
  if (!is_held(number)) return real_signal(number, handler);
  return set_handler(number, handler, SA_RESTART);
}

APENET_EXPORT sighandler_t bsd_signal(int number, sighandler_t handler) noexcept {
  return signal(number, handler);
}

APENET_EXPORT sighandler_t ssignal(int number, sighandler_t handler) noexcept {
  return signal(number, handler);
}

APENET_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  const HandlerNote note(number, handler);
  if (!is_held(number)) return real_sysv_signal(number, handler);
  return set_handler(number, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER));
}

APENET_EXPORT sighandler_t sysv_signal(int number, sighandler_t handler) noexcept {
  return __sysv_signal(number, handler);
}

APENET_EXPORT sighandler_t sigset(int number, sighandler_t handler) noexcept {
  const HandlerNote note(number, handler);
  if (!is_held(number) || handler == SIG_HOLD) return real_sigset(number, handler);
  return set_handler(number, handler, 0);
}

APENET_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return set_mask(real_sigprocmask, how, set, before);
}

APENET_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return set_mask(real_thread_mask, how, set, before);
}

}  // namespace apenet::shim
