#include "runtime/shim/host_timer.hpp"

#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/signal_gate.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;
constexpr std::int64_t ps_per_us = 1'000'000;

timeval to_timeval(std::int64_t ps) {
  const std::int64_t us = (ps + ps_per_us - 1) / ps_per_us;
  return {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
}

std::int64_t from_timeval(const timeval& time) {
  return to_ps({.tv_sec = time.tv_sec, .tv_nsec = time.tv_usec * 1000});
}

// A time that is not zero must not become zero.
timespec to_host_time(std::int64_t ps) {
  return to_timespec((ps + ps_per_ns - 1) / ps_per_ns * ps_per_ns);
}

// The signals of one kind that are pending, to be sent again.
class Pending {
 public:
  explicit Pending(int signal) {
    const std::uint64_t set = std::uint64_t{1} << static_cast<unsigned>(signal - 1);
    const timespec none{};
    siginfo_t info{};
    while (count_ < most &&
           host_call(SYS_rt_sigtimedwait, &set, &info, reinterpret_cast<std::uint64_t>(&none),
                     // NOLINTNEXTLINE(performance-no-int-to-ptr)
                     reinterpret_cast<const void*>(sizeof set)) == signal)
      infos_[count_++] = info;
  }
  [[nodiscard]] siginfo_t* of_timer(int timer) {
    siginfo_t* const end = infos_ + count_;
    siginfo_t* const found = std::find_if(infos_, end, [timer](const siginfo_t& info) {
      return info.si_code == SI_TIMER && info.si_timerid == timer;
    });
    return found == end ? nullptr : found;
  }
  template <typename Send>
  void send_again(Send send) {
    std::for_each(infos_, infos_ + count_, send);
  }

 private:
  static constexpr std::size_t most = 32;
  siginfo_t infos_[most];
  std::size_t count_ = 0;
};

void send(siginfo_t& info, std::int32_t receiver) {
  const auto process = getpid();
  const auto call = [&] {
    return receiver == 0 ? host_call(SYS_rt_sigqueueinfo, process, info.si_signo,
                                     reinterpret_cast<std::uint64_t>(&info))
                         : host_call(SYS_rt_tgsigqueueinfo, process, receiver,
                                     static_cast<std::uint64_t>(info.si_signo), &info);
  };
  if (call() == 0 || errno != EPERM) return;
  info.si_code = SI_TIMER;  // only the first thread may say that the kernel has sent it
  call();
}

// The C library uses the host's number.
int number_of(timer_t id) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(id));
}

// The host prefers the first thread, but does not know that it lets the signal in soon.
std::int32_t receiver_of(int signal, const sigset_t& blocked) {
  const std::int32_t first = getpid();
  const bool is_first = ipc::own_thread_id() == first;
  const bool takes = is_first ? sigismember(&blocked, signal) == 0 : SignalGate::is_for_first_thread(signal);
  return takes ? first : 0;
}

void send_signal(VirtualTimer& timer, const sigset_t& blocked) {
  const std::int32_t receiver = timer.receiver != 0 ? timer.receiver : receiver_of(timer.signal, blocked);
  siginfo_t info{};
  info.si_signo = timer.signal;
  info.si_code = SI_KERNEL;
  if (timer.kind == TimerKind::signal) {
    info.si_code = SI_TIMER;
    info.si_timerid = number_of(timer.id);
    info.si_value = timer.value;
    timer.overrun = timer.missed;
    info.si_overrun = timer.missed;
    if (timer.is_queued) {  // while it is pending, the timer sends no other
      Pending pending(timer.signal);
      siginfo_t* const own = pending.of_timer(number_of(timer.id));
      if (own != nullptr) timer.overrun = ++own->si_overrun;
      pending.send_again([receiver](siginfo_t& one) { send(one, receiver); });
      if (own != nullptr) return;
    }
    timer.is_queued = true;
  }
  send(info, receiver);
}

struct Notice {
  void (*routine)(sigval);
  sigval value;
};

void* give_notice(void* argument) {
  const std::unique_ptr<Notice> given(static_cast<Notice*>(argument));
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  given->routine(given->value);
  return nullptr;
}

void begin_thread(const VirtualTimer& timer) {
  auto notice = std::make_unique<Notice>(Notice{timer.routine, timer.value});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (timer.stack_bytes != 0) pthread_attr_setstacksize(&attributes, timer.stack_bytes);
  pthread_t thread{};
  Notice* const given = notice.release();
  if (pthread_create(&thread, &attributes, give_notice, given) != 0) notice.reset(given);
  pthread_attr_destroy(&attributes);
}

// The host makes the descriptor readable a moment later.
void make_readable(const VirtualTimer& timer) {
  set_host_timer(timer, {.left_ps = ps_per_ns});
  pollfd file{.fd = timer.host, .events = POLLIN, .revents = 0};
  constexpr int most_checks = 1000;
  const timespec interval{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int i = 0; i < most_checks; ++i) {
    if (host_call(SYS_ppoll, &file, 1, reinterpret_cast<std::uint64_t>(&interval)) != 0) return;
  }
}

}  // namespace

void note_host_alarm(const TimerSetting& setting) {
  ipc::Client* const client = ipc::Client::attached();
  const bool is_rank = client != nullptr && !client->is_own_block();
  // A rank may have set it before it had a block, or begun as another program.
  if (!is_rank || has_recorded_alarm()) record_own_image();
  if (!is_rank) return;
  std::int64_t until_ns = 0;
  if (setting.left_ps != 0) {
    until_ns = setting.interval_ps != 0 ? INT64_MAX : ipc::host_now_ns() + setting.left_ps / ps_per_ns;
  }
  client->block().outside.alarm_ns = until_ns;
}

TimerSetting set_host_timer(const VirtualTimer& timer, const TimerSetting& setting) {
  if (timer.kind == TimerKind::process) {
    const itimerval next{.it_interval = to_timeval(setting.interval_ps),
                         .it_value = to_timeval(setting.left_ps)};
    itimerval before{};
    host_call(SYS_setitimer, timer.host, &next, reinterpret_cast<std::uint64_t>(&before));
    if (timer.host == ITIMER_REAL) note_host_alarm(setting);
    return {.left_ps = from_timeval(before.it_value), .interval_ps = from_timeval(before.it_interval)};
  }
  const itimerspec next{.it_interval = to_host_time(setting.interval_ps),
                        .it_value = to_host_time(setting.left_ps)};
  itimerspec before{};
  if (timer.kind == TimerKind::file) {
    host_call(SYS_timerfd_settime, timer.host, 0, reinterpret_cast<std::uint64_t>(&next), &before);
  } else {
    host_call(SYS_timer_settime, number_of(timer.id), 0, reinterpret_cast<std::uint64_t>(&next), &before);
  }
  return {.left_ps = to_ps(before.it_value), .interval_ps = to_ps(before.it_interval)};
}

TimerSetting get_host_timer(const VirtualTimer& timer) {
  if (timer.kind == TimerKind::process) {
    itimerval now{};
    host_call(SYS_getitimer, timer.host, &now);
    return {.left_ps = from_timeval(now.it_value), .interval_ps = from_timeval(now.it_interval)};
  }
  itimerspec now{};
  if (timer.kind == TimerKind::file) {
    host_call(SYS_timerfd_gettime, timer.host, &now);
  } else {
    host_call(SYS_timer_gettime, number_of(timer.id), &now);
  }
  return {.left_ps = to_ps(now.it_value), .interval_ps = to_ps(now.it_interval)};
}

void tell_sent(const ipc::SentSignal& sent, const sigset_t& blocked) {
  siginfo_t info{};
  info.si_signo = sent.number;
  info.si_code = sent.code;
  info.si_pid = sent.process;
  info.si_uid = sent.user;
  info.si_value.sival_ptr = reinterpret_cast<void*>(sent.value);  // NOLINT(performance-no-int-to-ptr)
  send(info, receiver_of(sent.number, blocked));
}

void tell_end(VirtualTimer& timer, const sigset_t& blocked) {
  switch (timer.kind) {
    case TimerKind::process:
    case TimerKind::signal:
      send_signal(timer, blocked);
      break;
    case TimerKind::thread:
      begin_thread(timer);
      break;
    case TimerKind::file:
      make_readable(timer);
      break;
    case TimerKind::none:
    case TimerKind::silent:
      break;
  }
}

}  // namespace apenet::shim
