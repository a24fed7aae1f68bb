// Handlers of signals: a call that waits for a socket ends when one has run, as in Linux (signal(7)).
#include "api/sockets/signals.hpp"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "api/sockets/known_sockets.hpp"

namespace apenet::sockets {
namespace {

using Function = void (*)(int, siginfo_t*, void*);

// What the program has set.
struct Handling {
  std::atomic<Function> function{nullptr};
  std::atomic<int> flags{0};
};

std::array<Handling, NSIG>& handlings() {
  static constinit std::array<Handling, NSIG> value{};
  return value;
}

// Signals by siginterrupt(): signal() then sets no SA_RESTART.
std::array<std::atomic<bool>, NSIG>& interrupting() {
  static constinit std::array<std::atomic<bool>, NSIG> value{};
  return value;
}

constinit thread_local SignalCounts counts __attribute__((tls_model("initial-exec")));

struct Deferred {
  int number = 0;
  siginfo_t info{};
};
struct DeferredSignals {
  int depth = 0;  // HandlersWait
  std::size_t count = 0;
  std::array<Deferred, 16> signals{};
};
constinit thread_local DeferredSignals deferred __attribute__((tls_model("initial-exec")));

// An instruction of the thread itself has raised it.
bool is_fault(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP ||
         number == SIGSYS || number == SIGABRT;
}

void run(int number, siginfo_t* info, void* context) {
  const Handling& handling = handlings()[static_cast<std::size_t>(number)];
  if (deferred.depth > 0 && deferred.count < deferred.signals.size() && !is_fault(number)) {
    deferred.signals[deferred.count] = {number, *info};
    ++deferred.count;
    return;
  }
  ++counts.handled;
  if ((handling.flags.load() & SA_RESTART) == 0) ++counts.interrupting;
  handling.function.load()(number, info, context);
}

bool is_function(const struct sigaction& action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN && action.sa_handler != SIG_ERR;
}

}  // namespace

SignalCounts signal_counts() {
  return counts;
}

HandlersWait::HandlersWait() {
  ++deferred.depth;
}

HandlersWait::~HandlersWait() {
  --deferred.depth;
}

SignalCounts waiting_handlers() {
  SignalCounts found{.handled = deferred.count};
  for (std::size_t i = 0; i < deferred.count; ++i) {
    const Handling& handling = handlings()[static_cast<std::size_t>(deferred.signals[i].number)];
    if ((handling.flags & SA_RESTART) == 0) ++found.interrupting;
  }
  return found;
}

void run_waiting_handlers() {
  while (deferred.depth == 0 && deferred.count > 0) {
    sigset_t every{};
    sigset_t before{};
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    Deferred first = deferred.signals[0];
    std::copy(deferred.signals.begin() + 1, deferred.signals.end(), deferred.signals.begin());
    --deferred.count;
    sigset_t during = before;
    struct sigaction action {};
    sigaction(first.number, nullptr, &action);
    sigorset(&during, &before, &action.sa_mask);
    if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&during, first.number);
    pthread_sigmask(SIG_SETMASK, &during, nullptr);
    ucontext_t context{};
    getcontext(&context);
    run(first.number, &first.info, &context);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
}

APENET_SOCKETS_EXPORT int sigaction(int number, const struct sigaction* action,
                                    struct sigaction* before) noexcept {
  static const auto real = next<int (*)(int, const struct sigaction*, struct sigaction*)>("sigaction");
  if (number <= 0 || number >= NSIG) return real(number, action, before);
  Handling& handling = handlings()[static_cast<std::size_t>(number)];
  const Function function_before = handling.function;
  const int flags_before = handling.flags;
  struct sigaction given {};
  if (action != nullptr) {
    given = *action;
    if (is_function(given)) {
      handling.flags = given.sa_flags;
      handling.function = given.sa_sigaction;
      given.sa_sigaction = run;
      given.sa_flags |= SA_SIGINFO;
    }
  }
  const int result = real(number, action == nullptr ? nullptr : &given, before);
  if (result != 0 && action != nullptr && is_function(given)) {
    handling.flags = flags_before;
    handling.function = function_before;
  }
  if (result == 0 && before != nullptr && before->sa_sigaction == run) {
    before->sa_sigaction = function_before;
    if ((flags_before & SA_SIGINFO) == 0) before->sa_flags &= ~SA_SIGINFO;
  }
  return result;
}

APENET_SOCKETS_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  struct sigaction action {};
  struct sigaction before {};
  if (handler == SIG_ERR || number <= 0 || number >= NSIG) {
    errno = EINVAL;
    return SIG_ERR;
  }
  action.sa_handler = handler;
  sigaddset(&action.sa_mask, number);
  if (!interrupting()[static_cast<std::size_t>(number)]) action.sa_flags = SA_RESTART;
  return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

APENET_SOCKETS_EXPORT int siginterrupt(int number, int interrupts) noexcept {
  struct sigaction action {};
  if (sigaction(number, nullptr, &action) != 0) return -1;
  interrupting()[static_cast<std::size_t>(number)] = interrupts != 0;
  action.sa_flags = interrupts != 0 ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  return sigaction(number, &action, nullptr);
}

}  // namespace apenet::sockets
