#include "runtime/shim/direct_calls.hpp"

#include <pthread.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/answer_stack.hpp"
#include "runtime/shim/direct_code.hpp"
#include "runtime/shim/real.hpp"

extern "C" {
constinit thread_local char apenet_has_loaded = 0;
// The process has called dlmopen() for a namespace other than the program's.
__attribute__((visibility("hidden"), used)) char apenet_has_namespaces = 0;
}

namespace apenet::shim {
namespace {

constinit std::atomic<ApenetSystemCall> uncaught_call{nullptr};

// What the process has noted, also before it is a rank.
constinit std::atomic<std::uint32_t> uncaught_calls{0};

void publish_uncaught() {
  const std::uint32_t bits = uncaught_calls;
  ipc::Client* const client = bits == 0 ? nullptr : ipc::Client::attached();
  if (client == nullptr || client->is_own_block()) return;
  ipc::DirectNote& note = client->block().direct;
  const std::string_view name = direct_object();
  if (note.object[0] == '\0') name.copy(note.object, sizeof note.object - 1);
  note.uncaught |= bits;
}

}  // namespace

#if defined(__x86_64__)
long call_unwatched(long number, ...);
#endif

APENET_EXPORT ApenetSystemCall apenet_uncaught_call() {
#if defined(__x86_64__)
  if (apenet_catches_calls != 0) [[unlikely]]
    return call_unwatched;
#endif
  return uncaught_call.load(std::memory_order_relaxed);
}

void note_uncaught(ipc::UncaughtCall what) {
  uncaught_calls |= bit_of(what);
  publish_uncaught();
}

}  // namespace apenet::shim

#if defined(__x86_64__)

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "runtime/shim/c_library_code.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/computation.hpp"
#include "runtime/shim/direct_caller.hpp"
#include "runtime/shim/held_signals.hpp"
#include "runtime/shim/kernel_clocks.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/process_files.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/system_calls.hpp"
#include "runtime/shim/watched_calls.hpp"

extern "C" {
// Behind the instruction by which the program makes a call by syscall() (system_calls.cpp).
extern __attribute__((visibility("hidden"))) const char apenet_programs_call;
}

namespace apenet::shim {
namespace {

// As in <linux/prctl.h>, which older systems lack.
constexpr int set_dispatch = 59;
constexpr int dispatch_off = 0;
constexpr int dispatch_on = 1;
constexpr int caused_by_dispatch = 2;  // si_code of SIGSYS

// How the process catches its direct calls.
struct Catching {
  CLibraryCode library;
  std::atomic<bool> has_begun{false};
  std::atomic<bool> is_on{false};
  std::atomic<bool> can_answer{false};
  std::atomic<bool> is_programs{false};  // the program uses syscall user dispatch itself
};

constinit Catching catching;
constinit thread_local bool is_caught __attribute__((tls_model("initial-exec"))) = false;

// How the thread watches its calls.
struct Watching {
  bool is_on = false;
  std::uint32_t real_calls = 0;  // in so many of the shim's functions it was when it began
  bool is_possible = false;
  std::uint32_t watches = 0;
};

constinit thread_local Watching watching __attribute__((tls_model("initial-exec")));

bool is_of_simulator(std::uint64_t place) {
  constexpr std::array<std::uint8_t, 9> code{0x0f, 0x1f, 0x80, 0x6e, 0x65,
                                             0x70, 0x61, 0x0f, 0x05};  // APENET_OWN_CALL
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return std::memcmp(reinterpret_cast<const void*>(place - code.size()), code.data(), code.size()) == 0;
}

// Whether the host answers, because the call is none of the program's. A diverted function of
// the kernel's belongs to its caller.
bool is_for_host(const DirectCaller& caller) {
  const std::uint64_t place = caller.place();
  if (!is_passed_code(place)) return false;
  if (!is_kernel_clock(place)) return true;
  const std::uint64_t from = caller.returns_to();
  return catching.library.holds(from) || is_passed_code(from);
}

long result_of(long returned) {
  return returned == -1 ? -errno : returned;
}

// The first of the cores on which the thread may run. A runtime asks for them to run so many of its own
// threads, which share work by memory alone, so that the host's timing would decide which of them does it. On
// one core, it alternates.
long first_core(long thread, long bytes, void* set) {
  const int result =
      ipc::host_call(SYS_sched_getaffinity, thread, bytes, reinterpret_cast<std::uint64_t>(set));
  if (result < 0) return -errno;
  const std::span cores(static_cast<std::uint8_t*>(set), static_cast<std::size_t>(result));
  bool has_one = false;
  for (std::uint8_t& eight : cores) {
    const auto first = static_cast<std::uint8_t>(eight & -eight);
    eight = has_one ? 0 : first;
    has_one = has_one || first != 0;
  }
  return result;
}

// Handlers and masks are the held signals' also for code whose other calls pass: a sanitizer blocks all
// signals around what it does. nullopt: it is another call.
std::optional<long> answer_signal_call(const DirectCaller& caller, ucontext_t& context) {
  const auto [first, second, third, fourth, fifth, sixth] = caller.arguments();
  const auto pointer = [](long word) {
    return reinterpret_cast<void*>(word);  // NOLINT(performance-no-int-to-ptr)
  };
  constexpr long set_bytes = 8;
  if (fourth != set_bytes) return {};
  if (caller.number() == SYS_rt_sigaction)
    return change_action(static_cast<int>(first), pointer(second), pointer(third));
  if (caller.number() == SYS_rt_sigprocmask)
    return change_mask(static_cast<int>(first), pointer(second), pointer(third), context.uc_sigmask);
  return {};
}

// nullopt: the host answers.
std::optional<long> answer_caller(const DirectCaller& caller) {
  const long number = caller.number();
  const auto [first, second, third, fourth, fifth, sixth] = caller.arguments();
  const auto pointer = [](long word) {
    return reinterpret_cast<void*>(word);
  };  // NOLINT(performance-no-int-to-ptr)
  switch (number) {
    case SYS_sched_getaffinity:
      thread_order().run_alone();
      return first_core(first, second, pointer(third));
    case SYS_prctl:
      if (first != set_dispatch) return {};
      note_uncaught(ipc::UncaughtCall::dispatch);
      return -EINVAL;
    default:
      break;
  }
  switch (way_of_call(number)) {
    case Way::is_named:
      return result_of(apenet_named_call(number, first, second, third, fourth, fifth, sixth));
    case Way::of_sockets: {
      long returned = 0;
      const bool is_answered =
          apenet_socket_call != nullptr && apenet_socket_call(number, caller.arguments(), returned);
      return is_answered ? std::optional(result_of(returned)) : std::nullopt;
    }
    case Way::ends_image:
      return result_of(apenet_start_call(number, first, second, third, fourth, fifth));
    default:
      return {};
  }
}

void set_dispatch_without_watch();

// The call of a thread that watches its calls.
void answer_watched_call(DirectCaller& caller, ucontext_t& context) {
  const std::uint64_t place = caller.place();
  const bool is_programs = place == reinterpret_cast<std::uint64_t>(&apenet_programs_call);
  const bool is_librarys = catching.library.holds(place);
  constexpr long set_bytes = 8;
  const std::array<long, 6> arguments = caller.arguments();
  if (caller.number() == SYS_rt_sigprocmask && arguments[3] == set_bytes) {
    const auto pointer = [](long word) {
      return reinterpret_cast<void*>(word);  // NOLINT(performance-no-int-to-ptr)
    };
    caller.answer(change_mask(static_cast<int>(arguments[0]), pointer(arguments[1]), pointer(arguments[2]),
                              context.uc_sigmask));
    return;
  }
  // The simulator's own calls are the C library's syscall() where direct calls are caught.
  constexpr std::uint64_t most_bytes = 64;
  const bool is_own = (!is_programs && is_of_simulator(place)) ||
                      place - reinterpret_cast<std::uint64_t>(uncaught_call.load()) < most_bytes;
  const WatchedCall call{.number = caller.number(),
                         .arguments = arguments,
                         .is_librarys = is_librarys,
                         .is_judged = real_calls > watching.real_calls};
  if (!is_own && (is_in_call() || host_calls > 0 || !wants_possible_checks())) {
    set_dispatch_without_watch();
    caller.repeat();
    return;
  }
  if (pauses_watch(call.number)) {
    if (is_caught) set_dispatch_without_watch();
    caller.repeat();
    return;
  }
  if (is_caught && !is_own && !is_programs && !is_librarys && !is_for_host(caller)) {
    set_dispatch_without_watch();
    caller.repeat();  // it is caught again, and answered as any direct call
    return;
  }
  const std::optional<long> result = is_own ? std::nullopt : note_watched(call);
  if (result) {
    caller.answer(*result);
  } else {
    caller.pass();
  }
}

bool answer_direct_call(siginfo_t& info, ucontext_t& context) {
  if (info.si_code != caused_by_dispatch) return false;
  DirectCaller caller(context, catching.library.call, watching.is_on);
  if (watching.is_on) {
    answer_watched_call(caller, context);
    return true;
  }
  if (is_of_simulator(caller.place())) {
    caller.pass();
    return true;
  }
  if (const std::optional<long> result = answer_signal_call(caller, context)) {
    caller.answer(*result);
    return true;
  }
  if (is_for_host(caller)) {
    caller.pass();
    return true;
  }
  const Way way = way_of_call(caller.number());
  if (way == Way::starts || way == Way::starts_flags) {
    note_library_start();
    caller.pass_start();
    return true;
  }
  const ProgramCall program_call(
      reinterpret_cast<const void*>(caller.place()),  // NOLINT(performance-no-int-to-ptr)
      "syscall", Callee::time);
  // A handler of a signal that comes meanwhile may call, too.
  const bool was_in_call = std::exchange(is_in_direct_call, true);
  std::optional<long> result = answer_caller(caller);
  is_in_direct_call = was_in_call;
  if (!result && wants_possible_checks())
    result = note_watched({.number = caller.number(), .arguments = caller.arguments()});
  if (result) {
    caller.answer(*result);
  } else {
    caller.pass();
  }
  return true;
}

int set_dispatch_of_thread(int mode) {
  if (mode == dispatch_off) return ipc::host_call(SYS_prctl, set_dispatch, dispatch_off);
  const auto* const bytes =
      reinterpret_cast<const void*>(catching.library.bytes);  // NOLINT(performance-no-int-to-ptr)
  return ipc::host_call(SYS_prctl, set_dispatch, dispatch_on, catching.library.begin, bytes);
}

// Only the return from a handler is not caught, and no call while the thread answers one.
bool set_dispatch_of_watch() {
  constexpr std::uint64_t restorer_bytes = 10;  // to behind the instruction `syscall`
  const auto* const bytes =
      reinterpret_cast<const void*>(restorer_bytes);  // NOLINT(performance-no-int-to-ptr)
  return ipc::host_call(SYS_prctl, set_dispatch, dispatch_on, catching.library.restorer, bytes,
                        reinterpret_cast<std::uint64_t>(&apenet_catches_calls)) == 0;
}

void set_dispatch_without_watch() {
  apenet_catches_calls = 0;
  watching.is_on = false;
  set_dispatch_of_thread(is_caught ? dispatch_on : dispatch_off);
}

// Valgrind runs the process on its own calls, which dispatch would turn into signals. The instructions have
// no effect elsewhere.
bool is_in_valgrind() {
  constexpr std::uint64_t running_on_valgrind = 0x1001;
  const std::array<std::uint64_t, 6> request{running_on_valgrind};
  std::uint64_t answer = 0;
  __asm__ volatile(
      "rolq $3, %%rdi\n\t"
      "rolq $13, %%rdi\n\t"
      "rolq $61, %%rdi\n\t"
      "rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(request.data())
      : "cc", "memory");
  return answer != 0;
}

// Once for a process, whether it catches direct calls or a thread watches its calls.
void prepare_to_answer() {
  static const bool is_done = [] {
    catching.library = find_library_code();
    if (catching.library.bytes == 0 || catching.is_programs || is_in_valgrind()) return false;
    make_answer_stack();
    hold_signal(SIGSYS, answer_direct_call,
                {.entry = apenet_enter_answer, .restorer = catching.library.restorer});
    pthread_atfork(nullptr, resume_watch_of_calls, [] { watching = Watching{}; });
    return true;
  }();
  catching.can_answer = is_done;
}

void begin_to_catch() {
  if (catching.has_begun.exchange(true)) return;
  prepare_to_answer();
  if (!catching.can_answer || catching.is_programs) return note_uncaught(ipc::UncaughtCall::all);
  make_answer_stack();
  let_held_signals_in();
  if (set_dispatch_of_thread(dispatch_on) != 0) return note_uncaught(ipc::UncaughtCall::all);
  is_caught = true;
  catching.is_on = true;
  const auto call = reinterpret_cast<ApenetSystemCall>(next_symbol("syscall"));
  if (catching.library.holds(reinterpret_cast<std::uint64_t>(call))) uncaught_call = call;
  pthread_atfork(nullptr, nullptr, [] {
    is_caught = false;
    catch_direct_calls();
  });
  if (!divert_kernel_clocks()) note_uncaught(ipc::UncaughtCall::clocks);
}

}  // namespace

void catch_direct_calls() {
  if (!catching.is_on || is_caught) return;
  make_answer_stack();
  let_held_signals_in();
  is_caught = set_dispatch_of_thread(dispatch_on) == 0;
}

namespace {

// Whether the program blocks SIGSYS since before it was held: it would see that it is blocked no more.
bool blocks_answers() {
  std::uint64_t blocked = 0;
  const void* const none = nullptr;
  ipc::host_call(SYS_rt_sigprocmask, SIG_BLOCK, none, reinterpret_cast<std::uint64_t>(&blocked),
                 reinterpret_cast<const void*>(sizeof blocked));  // NOLINT(performance-no-int-to-ptr)
  return (blocked >> static_cast<unsigned>(SIGSYS - 1) & 1U) != 0;
}

// Whether a debugger follows the process: it would stop at each caught call.
bool is_traced() {
  ProcessText buffer;
  constexpr std::string_view key = "TracerPid:\t";
  const std::string_view status = read_of(getpid(), getpid(), "status", buffer);
  const std::size_t at = status.find(key);
  return at == std::string_view::npos || status.substr(at + key.size(), 1) != "0";
}

}  // namespace

void watch_calls() {
  if (is_on_answer_stack()) return;  // a direct call, as the thread's others
  const int error = errno;
  constexpr std::uint32_t watches_of_check = 64;
  const bool is_checked = watching.watches++ % watches_of_check == 0;
  if (is_checked && blocks_answers()) {
    watching.is_possible = false;
  } else if (is_checked) {
    prepare_to_answer();
    watching.is_possible = catching.can_answer && catching.library.restorer != 0 && !is_traced();
  }
  if (watching.is_possible && !catching.is_programs) {
    make_answer_stack();
    let_held_signals_in();
    watching.real_calls = real_calls;
    watching.is_on = has_answer_stack() && set_dispatch_of_watch();
    watching.is_possible = watching.is_on;
    if (watching.is_on) apenet_catches_calls = 1;
  }
  errno = error;
}

void resume_watch_of_calls() {
  if (watching.is_on && !is_on_answer_stack()) apenet_catches_calls = 1;
}

// A call of the simulator's own by a thread that watches its calls.
long call_unwatched(long number, ...) {
  std::array<long, 6> arguments{};
  va_list list;
  va_start(list, number);
  for (long& word : arguments) word = va_arg(list, long);
  va_end(list);
  const bool is_watched = std::exchange(apenet_catches_calls, char{0}) != 0;
  const auto [first, second, third, fourth, fifth, sixth] = arguments;
  const int result =
      ipc::host_call(number, first, second, static_cast<std::uint64_t>(third),
                     reinterpret_cast<const void*>(fourth),  // NOLINT(performance-no-int-to-ptr)
                     static_cast<std::uint64_t>(fifth), static_cast<std::uint64_t>(sixth));
  const int error = errno;
  // The mask may be one from before this signal was held.
  if (is_watched && number == SYS_rt_sigprocmask) let_held_signals_in();
  if (is_watched) apenet_catches_calls = 1;
  errno = error;
  return result;
}

void end_watch_of_calls() {
  if (!watching.is_on) return;
  const int error = errno;
  set_dispatch_without_watch();
  errno = error;
}

void let_direct_calls_pass() {
  end_watch_of_calls();
  if (!is_caught) return;
  set_dispatch_of_thread(dispatch_off);
  is_caught = false;
}

APENET_EXPORT int prctl(int option, ...) noexcept {
  std::array<unsigned long, 4> words{};
  va_list list;
  va_start(list, option);
  for (unsigned long& word : words) word = va_arg(list, unsigned long);
  va_end(list);
  if (option == set_dispatch && words[0] != 0) {
    note_uncaught(ipc::UncaughtCall::dispatch);
    if (catching.is_on) {
      errno = EINVAL;
      return -1;
    }
    catching.is_programs = true;
  }
  return ipc::host_call(SYS_prctl, option, words[0], words[1],
                        reinterpret_cast<const void*>(words[2]),  // NOLINT(performance-no-int-to-ptr)
                        words[3]);
}

}  // namespace apenet::shim

#else

// The kernel has no syscall user dispatch on these processors. Direct calls get the host's answers, and the
// run says so, as on an x86-64 host without it.
namespace apenet::shim {
namespace {

void begin_to_catch() {
  note_uncaught(ipc::UncaughtCall::all);
}

}  // namespace

void catch_direct_calls() {}
void let_direct_calls_pass() {}
void watch_calls() {}
void resume_watch_of_calls() {}
void end_watch_of_calls() {}

}  // namespace apenet::shim

#endif

void apenet::shim::follow_direct_calls() {
  const bool has_namespaces = apenet_has_namespaces != 0;
  if (find_direct_code(has_namespaces)) begin_to_catch();
  if (has_namespaces && !shows_namespaces()) note_uncaught(ipc::UncaughtCall::namespaces);
  catch_direct_calls();
  publish_uncaught();
}
