#include "runtime/shim/signal_gate.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/single_threaded.hpp"

namespace apenet::shim {
namespace {

// The host's sets of signals are shorter than the C library's.
using HostSet = std::uint64_t;

// The C library interrupts its threads by 32 and 33, and does not let them be blocked: they stay as they are
// (wait_interrupter.hpp). SIGSYS (31) asks for
// an answer to a call that this thread makes (direct_calls.hpp).
constexpr HostSet all = ~(HostSet{7} << 30U);

HostSet host_set(const sigset_t& set) {
  HostSet result = 0;
  std::memcpy(&result, &set, sizeof result);
  return result;
}

const void* as_argument(std::size_t bytes) {
  return reinterpret_cast<const void*>(bytes);  // NOLINT(performance-no-int-to-ptr)
}

// Those that the first thread lets in when it opens its gate.
constinit std::atomic<HostSet> first_thread_lets_in{0};

}  // namespace

SignalGate::SignalGate(const sigset_t* lets_in) {
  sigset_t* const before = &before_;
  ipc::host_call(SYS_rt_sigprocmask, SIG_BLOCK, &all, reinterpret_cast<std::uint64_t>(before),
                 as_argument(sizeof(HostSet)));
  const HostSet outside = host_set(before_);
  if (ipc::is_single_threaded() || (outside & all) == all) return;
  is_outermost_ = ipc::own_thread_id() == getpid();
  if (is_outermost_) first_thread_lets_in = lets_in != nullptr ? host_set(*lets_in) : ~outside;
}

SignalGate::~SignalGate() {
  const int error = errno;
  if (is_outermost_) first_thread_lets_in = 0;
  ipc::host_call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, 0, as_argument(sizeof(HostSet)));
  errno = error;
}

bool SignalGate::is_for_first_thread(int signal) {
  return (first_thread_lets_in >> static_cast<unsigned>(signal - 1) & 1U) != 0;
}

void SignalGate::await(const sigset_t& blocked) {
  ipc::host_call(SYS_rt_sigsuspend, &blocked, sizeof(HostSet));
}

// The host checks for signals also if the wait has no length.
bool SignalGate::let_in(const sigset_t& blocked, std::int64_t most_ns) {
  constexpr std::int64_t ns_of_second = 1'000'000'000;
  const timespec time{.tv_sec = most_ns / ns_of_second, .tv_nsec = most_ns % ns_of_second};
  const int error = errno;
  const int result = ipc::host_call(SYS_ppoll, static_cast<void*>(nullptr), 0,
                                    reinterpret_cast<std::uint64_t>(&time), &blocked, sizeof(HostSet));
  const bool is_interrupted = result < 0 && errno == EINTR;
  errno = error;
  return is_interrupted;
}

}  // namespace apenet::shim
