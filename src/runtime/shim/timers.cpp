// Timers of the C library in virtual time (virtual_timers.hpp): of alarm(), setitimer(), timer_create() and
// timerfd_create(). Before virtual time begins, they run in the host.
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/host_timer.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;

constexpr std::int64_t us_per_s = 1'000'000;

bool is_valid(const timeval& time) {
  return time.tv_sec >= 0 && time.tv_usec >= 0 && time.tv_usec < us_per_s;
}

std::int64_t ps_of(const timeval& time) {
  return to_ps(timespec{.tv_sec = time.tv_sec, .tv_nsec = time.tv_usec * 1000});
}

// What is left is never shown as zero.
timeval to_timeval(std::int64_t ps) {
  constexpr std::int64_t ps_per_us = 1'000'000;
  const std::int64_t us = (ps + ps_per_us - 1) / ps_per_us;
  return {.tv_sec = us / us_per_s, .tv_usec = us % us_per_s};
}

itimerval to_itimerval(const TimerSetting& setting) {
  return {.it_interval = to_timeval(setting.interval_ps), .it_value = to_timeval(setting.left_ps)};
}

// The client if the process's timers are virtual. What was due has come.
ipc::Client* timer_client() {
  ipc::Client* client = clock_client();
  if (client != nullptr && client->has_due_timer()) apenet_timers_due();
  return client;
}

// The result of a call that has written so.
template <typename Object>
int written(Object* to_program, const Object& from) {
  if (ipc::copy_out_if_wanted(to_program, from)) return 0;
  errno = EFAULT;
  return -1;
}

int set_itimer(int which, const itimerval* value, itimerval* before) {
  constexpr itimerval none{};
  const bool is_given = ipc::is_readable_or_none(value);
  const itimerval& next = value != nullptr && is_given ? *value : none;
  ipc::Client* client = is_given ? timer_client() : nullptr;
  const bool is_known = which >= ITIMER_REAL && which <= ITIMER_PROF;
  // The host reports invalid arguments.
  if (client == nullptr || !is_known || !is_valid(next.it_value) || !is_valid(next.it_interval)) {
    const int result = host_call(SYS_setitimer, which, value, reinterpret_cast<std::uint64_t>(before));
    if (result != 0 || !is_known) return result;
    const TimerSetting early{.left_ps = ps_of(next.it_value), .interval_ps = ps_of(next.it_interval)};
    VirtualTimers::of_process().itimer(which).early = early;
    if (which == ITIMER_REAL) note_host_alarm(early);
    return result;
  }
  VirtualTimers& timers = VirtualTimers::of_process();
  const TimerSetting old =
      timers.set(*client, timers.itimer(which),
                 {.left_ps = ps_of(next.it_value), .interval_ps = ps_of(next.it_interval)});
  return written(before, to_itimerval(old));
}

// As far as it concerns the timer: the host has accepted it.
VirtualTimer described(const sigevent* event, clockid_t clock, timer_t id) {
  VirtualTimer timer;
  timer.id = id;
  timer.is_cpu = kind_of(clock) == ClockKind::cpu;
  timer.base_s = base_s(kind_of(clock));
  timer.kind = TimerKind::signal;
  if (event == nullptr) {
    timer.signal = SIGALRM;
    return timer;
  }
  timer.signal = event->sigev_signo;
  timer.value = event->sigev_value;
  if (event->sigev_notify == SIGEV_NONE) timer.kind = TimerKind::silent;
  if (event->sigev_notify == SIGEV_THREAD_ID) timer.receiver = event->_sigev_un._tid;
  if (event->sigev_notify == SIGEV_THREAD) {
    timer.kind = TimerKind::thread;
    timer.routine = event->sigev_notify_function;
    const pthread_attr_t* attributes = event->sigev_notify_attributes;
    if (attributes != nullptr) pthread_attr_getstacksize(attributes, &timer.stack_bytes);
  }
  return timer;
}

TimerSetting to_setting(const itimerspec& value, const VirtualTimer& timer, bool is_date) {
  TimerSetting setting{.left_ps = to_ps(value.it_value), .interval_ps = to_ps(value.it_interval)};
  if (!is_date) return setting;
  // A date long past is as good as one a little earlier.
  constexpr time_t longest_past_s = 100'000;
  const time_t since_s = std::max(value.it_value.tv_sec - timer.base_s, -longest_past_s);
  const std::int64_t part_ps = value.it_value.tv_nsec * ps_per_ns;
  setting.left_ps =
      since_s < 0 ? since_s * ps_per_s + part_ps : to_ps(timespec{since_s, value.it_value.tv_nsec});
  return setting;
}

itimerspec to_itimerspec(const TimerSetting& setting) {
  return {.it_interval = to_timespec(setting.interval_ps), .it_value = to_timespec(setting.left_ps)};
}

bool is_valid(const itimerspec* value) {
  return shim::is_valid(&value->it_value) && shim::is_valid(&value->it_interval);
}

// Sets a timer of timer_create() or timerfd_create(). set_in_host(value, is_date): the same in the host,
// which reports invalid arguments.
template <typename SetInHost>
int set_timer(VirtualTimer* timer, bool is_date, const itimerspec* value, itimerspec* before,
              SetInHost set_in_host) {
  ipc::Client* client = timer_client();
  if (client != nullptr && timer != nullptr && is_valid(value)) {
    const bool stops = value->it_value.tv_sec == 0 && value->it_value.tv_nsec == 0;
    const TimerSetting old = VirtualTimers::of_process().set(
        *client, *timer, to_setting(*value, *timer, is_date && !stops), is_date && !stops);
    const int result = written(before, to_itimerspec(old));
    if (client->has_due_timer()) apenet_timers_due();
    return result;
  }
  if (!is_date || !ipc::is_readable(value, sizeof *value)) {
    if (timer != nullptr && is_valid(value)) timer->early = {.left_ps = to_ps(value->it_value)};
    return set_in_host(value, false);
  }
  itimerspec host{.it_interval = value->it_interval, .it_value = *EarlyDeadline(&value->it_value).get()};
  if (client == nullptr || !is_valid(value)) return set_in_host(&host, true);
  // A timer that the shim does not know, as one that another descriptor names.
  host.it_value = to_timespec(std::max(deadline_ps(value->it_value) - now_ps(*client), ps_per_ns));
  return set_in_host(&host, false);
}

template <typename GetFromHost>
int get_timer(VirtualTimer* timer, itimerspec* value, GetFromHost get_from_host) {
  ipc::Client* client = timer_client();
  if (client == nullptr || timer == nullptr || is_null(value)) return get_from_host();
  return written(value, to_itimerspec(VirtualTimers::of_process().get(*client, *timer)));
}

// Timers of the children of a rank are the host's, unless they act in its order.
bool keeps_timers() {
  return ipc::Client::run_made_at_s() != 0 && (!ipc::Client::is_fork() || ipc::Client::is_member());
}

}  // namespace

APENET_EXPORT int setitimer(__itimer_which_t which, const itimerval* value, itimerval* before) noexcept {
  return set_itimer(which, value, before);
}

APENET_EXPORT int getitimer(__itimer_which_t which, itimerval* value) noexcept {
  ipc::Client* client = timer_client();
  if (client == nullptr || is_null(value) || which < ITIMER_REAL || which > ITIMER_PROF)
    return ipc::host_call(SYS_getitimer, which, value);
  VirtualTimers& timers = VirtualTimers::of_process();
  return written(value, to_itimerval(timers.get(*client, timers.itimer(which))));
}

// Rounds to whole seconds as the kernel does.
APENET_EXPORT unsigned alarm(unsigned seconds) noexcept {
  const itimerval value{.it_interval = {},
                        .it_value = {.tv_sec = static_cast<time_t>(seconds), .tv_usec = 0}};
  itimerval before{};
  if (set_itimer(ITIMER_REAL, &value, &before) != 0) return static_cast<unsigned>(-1);
  const timeval& left = before.it_value;
  const bool rounds_up = left.tv_usec >= 500'000 || (left.tv_sec == 0 && left.tv_usec > 0);
  return static_cast<unsigned>(left.tv_sec) + (rounds_up ? 1 : 0);
}

APENET_EXPORT useconds_t ualarm(useconds_t delay, useconds_t interval) noexcept {
  const itimerval value{.it_interval = {.tv_sec = 0, .tv_usec = static_cast<suseconds_t>(interval)},
                        .it_value = {.tv_sec = 0, .tv_usec = static_cast<suseconds_t>(delay)}};
  itimerval before{};
  if (set_itimer(ITIMER_REAL, &value, &before) != 0) return static_cast<useconds_t>(-1);
  return static_cast<useconds_t>(before.it_value.tv_sec * 1'000'000 + before.it_value.tv_usec);
}

// The host's timer sends nothing by itself if a thread is to begin: then the shim begins it.
APENET_EXPORT int timer_create(clockid_t clock, sigevent* event, timer_t* timer) noexcept {
  static const auto real = next<int (*)(clockid_t, sigevent*, timer_t*)>("timer_create");
  const bool begins_thread = event != nullptr && event->sigev_notify == SIGEV_THREAD;
  // Before virtual time begins, the C library's own thread waits for the signal, and goes on to.
  const bool is_kept =
      keeps_timers() && kind_of(clock) != ClockKind::host && (!begins_thread || clock_client() != nullptr);
  sigevent silent{};
  silent.sigev_notify = SIGEV_NONE;
  const int result = real(clock, begins_thread && is_kept ? &silent : event, timer);
  if (result != 0 || !is_kept) return result;
  if (VirtualTimers::of_process().add(described(event, clock, *timer)) != nullptr) return 0;
  next<int (*)(timer_t)>("timer_delete")(*timer);
  errno = EAGAIN;
  return -1;
}

APENET_EXPORT int timer_delete(timer_t timer) noexcept {
  VirtualTimers& timers = VirtualTimers::of_process();
  VirtualTimer* const own = keeps_timers() ? timers.find(timer) : nullptr;
  if (own != nullptr) timers.drop(*own);
  return next<int (*)(timer_t)>("timer_delete")(timer);
}

APENET_EXPORT int timer_settime(timer_t timer, int flags, const itimerspec* value,
                                itimerspec* before) noexcept {
  APENET_TIME_CALL;
  static const auto real = next<int (*)(timer_t, int, const itimerspec*, itimerspec*)>("timer_settime");
  VirtualTimer* const own = keeps_timers() ? VirtualTimers::of_process().find(timer) : nullptr;
  return set_timer(own, (flags & TIMER_ABSTIME) != 0, value, before,
                   [=](const itimerspec* given, bool is_date) {
                     return real(timer, is_date ? flags : flags & ~TIMER_ABSTIME, given, before);
                   });
}

APENET_EXPORT int timer_gettime(timer_t timer, itimerspec* value) noexcept {
  APENET_TIME_CALL;
  static const auto real = next<int (*)(timer_t, itimerspec*)>("timer_gettime");
  VirtualTimer* const own = keeps_timers() ? VirtualTimers::of_process().find(timer) : nullptr;
  return get_timer(own, value, [=] { return real(timer, value); });
}

APENET_EXPORT int timer_getoverrun(timer_t timer) noexcept {
  static const auto real = next<int (*)(timer_t)>("timer_getoverrun");
  ipc::Client* client = timer_client();
  const VirtualTimer* const own = client != nullptr ? VirtualTimers::of_process().find(timer) : nullptr;
  return own != nullptr ? own->overrun : real(timer);
}

APENET_EXPORT int timerfd_create(clockid_t clock, int flags) noexcept {
  static const auto real = next<int (*)(clockid_t, int)>("timerfd_create");
  const int file = real(clock, flags);
  if (file < 0 || !keeps_timers()) return file;
  VirtualTimers& timers = VirtualTimers::of_process();
  if (VirtualTimer* const closed = timers.find_file(file)) timers.drop(*closed);
  VirtualTimer timer;
  timer.kind = TimerKind::file;
  timer.host = file;
  timer.base_s = base_s(kind_of(clock));
  if (timers.add(timer) != nullptr) return file;
  close(file);
  errno = EMFILE;
  return -1;
}

APENET_EXPORT int timerfd_settime(int file, int flags, const itimerspec* value, itimerspec* before) noexcept {
  APENET_TIME_CALL;
  static const auto real = next<int (*)(int, int, const itimerspec*, itimerspec*)>("timerfd_settime");
  constexpr int known = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
  VirtualTimer* const own =
      keeps_timers() && (flags & ~known) == 0 ? VirtualTimers::of_process().find_file(file) : nullptr;
  return set_timer(own, (flags & TFD_TIMER_ABSTIME) != 0, value, before,
                   [=](const itimerspec* given, bool is_date) {
                     return real(file, is_date ? flags : flags & ~known, given, before);
                   });
}

APENET_EXPORT int timerfd_gettime(int file, itimerspec* value) noexcept {
  APENET_TIME_CALL;
  static const auto real = next<int (*)(int, itimerspec*)>("timerfd_gettime");
  VirtualTimer* const own = keeps_timers() ? VirtualTimers::of_process().find_file(file) : nullptr;
  return get_timer(own, value, [=] { return real(file, value); });
}

}  // namespace apenet::shim
