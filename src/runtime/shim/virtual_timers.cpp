#include "runtime/shim/virtual_timers.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/cycle_counter.hpp"
#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/host_timer.hpp"
#include "runtime/shim/library_process_ids.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/signal_gate.hpp"
#include "runtime/shim/system_calls.hpp"
#include "runtime/shim/wait_interrupter.hpp"

namespace apenet::shim {
namespace {

constexpr std::int64_t never_ps = VirtualTimer::never_ps;

// If several ends of a timer have passed at once, so many of them are reported one by one.
constexpr std::int64_t most_late_ends = 1000;

std::int64_t time_of(ipc::Client& client, const VirtualTimer& timer) {
  const std::int64_t now_ps = client.rank_time_ps();
  return timer.is_cpu ? now_ps - client.block().clock.slept_ps.get() : now_ps;
}

std::int64_t left_ps(ipc::Client& client, const VirtualTimer& timer) {
  if (timer.due_ps == never_ps) return 0;
  const std::int64_t now_ps = timer.is_cpu ? time_of(client, timer) : client.time_ps();
  return std::max(timer.due_ps - now_ps, ps_per_ns);
}

// Moves the timer on by so many of its ends.
void pass_ends(VirtualTimer& timer, std::int64_t count) {
  timer.due_ps = timer.interval_ps == 0 ? never_ps : timer.due_ps + count * timer.interval_ps;
  if (timer.kind == TimerKind::file) timer.ends += static_cast<std::uint64_t>(count);
}

// What the program that the process executes finds.
ipc::LeftAlarm& left_alarm(ipc::Client& client) {
  ipc::OrderedThread* const own = client.is_own_block() ? thread_order().find_process(getpid()) : nullptr;
  return own != nullptr ? own->left_alarm : client.block().left_alarm;
}

// How often it has ended while the process was stopped: the signal was pending all the time.
std::int64_t ends_while_stopped(const ipc::Client& client, const VirtualTimer& timer) {
  const ipc::OrderedThread* const own = client.ordered();
  if (own == nullptr || timer.is_cpu || timer.interval_ps == 0) return 0;
  const std::int64_t late_ps = own->continued_ps - client.header().epoch_ps - timer.due_ps;
  return late_ps < 0 ? 0 : 1 + late_ps / timer.interval_ps;
}

bool is_first_thread() {
  return ipc::own_thread_id() == getpid();
}

// Sends the timer's signal. If another thread sends it to the first one, no time passes until that has
// handled it, and the handler acts at the sender's time.
void send_end(VirtualTimer& timer, const sigset_t& blocked) {
  const bool is_for_first = !is_first_thread() && (timer.receiver == 0 || timer.receiver == getpid());
  const ipc::OrderedThread* const own = is_for_first ? ordered_thread() : nullptr;
  if (own == nullptr) return tell_end(timer, blocked);
  thread_order().announce_signal(own->process, timer.signal, *own);
  tell_end(timer, blocked);
  thread_order().ask_process(own->process, timer.signal, *own);
  thread_order().announce_signal(own->process, 0, *own);
}

}  // namespace

constinit thread_local bool is_paced = false;

namespace {

// While is_paced.
constinit thread_local HostPace* own_pace = nullptr;

}  // namespace

// The table, for as long as this object lives: no signal of the thread comes meanwhile.
class VirtualTimers::Guard {
 public:
  explicit Guard(VirtualTimers& timers) : lock_(timers.mutex_) {}
  [[nodiscard]] const sigset_t& outside() const { return gate_.outside(); }

 private:
  SignalGate gate_;
  std::lock_guard<std::mutex> lock_;
};

VirtualTimers& VirtualTimers::of_process() {
  static constinit VirtualTimers timers;
  return timers;
}

void VirtualTimers::refresh(ipc::Client& client) {
  const std::int64_t slept_ps = client.block().clock.slept_ps.get();
  std::int64_t first_ps = never_ps;
  std::int64_t first_of_any_ps = never_ps;
  bool has_signals = false;
  for_each([&](const VirtualTimer& timer) {
    if (timer.due_ps == never_ps) return;
    if (!timer.is_cpu && timer.kind != TimerKind::file) has_signals = true;
    if (!timer.is_cpu) first_ps = std::min(first_ps, timer.due_ps);
    first_of_any_ps = std::min(first_of_any_ps, timer.is_cpu ? timer.due_ps + slept_ps : timer.due_ps);
  });
  has_signals_ = has_signals;
  if (first_ps_.exchange(first_ps) != first_ps) {
    ++changes_;
    if (is_kept_ && keeper_ != pthread_t{}) thread_order().cancel(keeper_, nullptr);
  }
  first_of_any_ps = std::min(first_of_any_ps, client.signal_ps());
  client.block().timer_due_ps =
      first_of_any_ps == never_ps ? never_ps : first_of_any_ps + client.header().epoch_ps;
}

void VirtualTimers::adopt(ipc::Client& client) {
  const Guard guard(*this);
  if (has_adopted_) return;
  has_adopted_ = true;
  for_each([&](VirtualTimer& timer) {
    const TimerSetting host = get_host_timer(timer);
    if (host.left_ps == 0) return;
    set_host_timer(timer, {});
    // The program that has executed this one may have set it, by whole seconds.
    const std::int64_t whole_ps = (host.left_ps + ps_per_s - 1) / ps_per_s * ps_per_s;
    const std::int64_t left_ps = timer.kind == TimerKind::process ? whole_ps : host.left_ps;
    timer.due_ps = time_of(client, timer) + (timer.early.left_ps != 0 ? timer.early.left_ps : left_ps);
    timer.interval_ps = host.interval_ps;
  });
  refresh(client);
}

template <typename Is>
VirtualTimer* VirtualTimers::find_where(Is is) {
  const Guard guard(*this);
  const auto end = timers_.begin() + static_cast<std::ptrdiff_t>(used_);
  const auto found = std::find_if(timers_.begin() + itimers, end, is);
  return found == end ? nullptr : &*found;
}

VirtualTimer* VirtualTimers::find(timer_t id) {
  return find_where([id](const VirtualTimer& timer) {
    return timer.kind != TimerKind::none && timer.kind != TimerKind::file && timer.id == id;
  });
}

VirtualTimer* VirtualTimers::find_file(int file) {
  return find_where(
      [file](const VirtualTimer& timer) { return timer.kind == TimerKind::file && timer.host == file; });
}

VirtualTimer* VirtualTimers::add(const VirtualTimer& timer) {
  const Guard guard(*this);
  const auto found = std::find_if(timers_.begin() + itimers, timers_.end(),
                                  [](const VirtualTimer& one) { return one.kind == TimerKind::none; });
  if (found == timers_.end()) return nullptr;
  *found = timer;
  if (timer.kind == TimerKind::file) has_files_ = true;
  used_ = std::max(used_, static_cast<std::size_t>(found - timers_.begin()) + 1);
  return &*found;
}

void VirtualTimers::drop(VirtualTimer& timer) {
  const Guard guard(*this);
  const bool stops_in_host = timer.is_in_host && timer.due_ps != never_ps;
  timer = {};
  if (stops_in_host) expect_early_signals(guard.outside());
  if (ipc::Client* client = ipc::Client::known()) refresh(*client);
}

std::uint64_t VirtualTimers::take_ends(VirtualTimer& timer) {
  const Guard guard(*this);
  return std::exchange(timer.ends, 0);
}

TimerSetting VirtualTimers::set(ipc::Client& client, VirtualTimer& timer, const TimerSetting& setting,
                                bool is_date) {
  const Guard guard(*this);
  const bool runs_in_host = timer.is_in_host && timer.due_ps != never_ps;
  const bool stops_in_host = runs_in_host && take_from_host(timer, true) < 0;
  const TimerSetting before{.left_ps = left_ps(client, timer), .interval_ps = timer.interval_ps};
  const std::int64_t now_ps = timer.is_cpu ? time_of(client, timer) : client.time_ps();
  timer.due_ps = is_date                ? setting.left_ps
                 : setting.left_ps == 0 ? never_ps
                                        : now_ps + std::min(setting.left_ps, ipc::end_of_time_ps - now_ps);
  timer.interval_ps = setting.interval_ps;
  if (timer.kind == TimerKind::thread) begins_threads_ = true;
  timer.ends = 0;
  timer.overrun = 0;
  if (timer.kind == TimerKind::file) set_host_timer(timer, {});
  if (timer.is_in_host && timer.due_ps != never_ps) run_in_host(timer);
  if (stops_in_host) expect_early_signals(guard.outside());
  refresh(client);
  keep_time(client);
  return before;
}

// Beside other threads a thread of the shim's sleeps until a timer is due: it moves the clock when all of
// them are blocked. It ends when no timer runs.
void VirtualTimers::keep_time(ipc::Client& client) {
  if ((ipc::is_single_threaded() && !begins_threads_) || first_ps() == never_ps) return;
  if (client.progress().leaves() || is_kept_.exchange(true)) return;
  const SignalGate gate;  // the thread takes no signals
  const auto keep = [](void* argument) -> void* {
    of_process().keep_time_alone(*static_cast<ipc::Client*>(argument));
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  if (pthread_create(&thread, &attributes, keep, &client) != 0) is_kept_ = false;
  pthread_attr_destroy(&attributes);
}

void VirtualTimers::keep_time_alone(ipc::Client& client) {
  constexpr timespec moment{.tv_sec = 0, .tv_nsec = 50'000};
  constexpr int most_checks = 2000;  // the first thread may have left its sleep by a jump
  int checks = 0;
  // Once the program leaves MPI, nobody waits for a timer.
  const auto is_needed = [&] { return first_ps() != never_ps && !client.progress().leaves(); };
  keeper_ = pthread_self();
  if (ipc::OrderedThread* const own = client.ordered()) own->writes_nothing = true;
  do {
    for (std::uint32_t changes = changes_; is_needed(); changes = changes_) {
      const std::int64_t left_ps = first_ps() - client.time_ps();
      if (left_ps > 0) client.sleep(left_ps);
      if (!client.has_due_timer()) continue;
      fire(client);
      checks = changes_ == changes ? checks + 1 : 0;
      if (checks >= most_checks) first_thread_end_ps_ = 0;
      if (checks > 0) ipc::futex_wait(changes_, changes, &moment);
    }
    is_kept_ = false;
  } while (is_needed() && !is_kept_.exchange(true));
  keeper_ = pthread_t{};
}

void VirtualTimers::note_signal(const VirtualTimer& timer) {
  last_signal_ = timer.signal;
}

void VirtualTimers::note_sleep(std::int64_t end_ps) {
  if (!ipc::is_single_threaded() && is_first_thread()) first_thread_end_ps_ = end_ps;
}

// The first thread sleeps until the timer is due, and its sleep is to end by the signal.
bool VirtualTimers::is_left_to_first_thread(const VirtualTimer& timer) const {
  const std::int64_t end_ps = first_thread_end_ps_;
  return end_ps == timer.due_ps && (timer.receiver == 0 || timer.receiver == getpid()) &&
         (timer.kind == TimerKind::process || timer.kind == TimerKind::signal) && !is_first_thread();
}

TimerSetting VirtualTimers::get(ipc::Client& client, VirtualTimer& timer) {
  const Guard guard(*this);
  return {.left_ps = left_ps(client, timer), .interval_ps = timer.interval_ps};
}

// Returns the timer that was due first.
VirtualTimer* VirtualTimers::find_due(ipc::Client& client) {
  VirtualTimer* found = nullptr;
  std::int64_t late_ps = -1;
  for_each([&](VirtualTimer& timer) {
    const std::int64_t now_ps = time_of(client, timer);
    if (timer.due_ps > now_ps || now_ps - timer.due_ps <= late_ps || is_left_to_first_thread(timer)) return;
    if (timer.is_in_host && take_from_host(timer, false) >= 0 && timer.due_ps > now_ps) return;
    found = &timer;
    late_ps = now_ps - timer.due_ps;
  });
  return found;
}

// Passes on the first signal of another rank, unless the timer was due before it.
bool VirtualTimers::pass_on_sent(ipc::Client& client, const VirtualTimer* timer, const sigset_t& blocked) {
  const std::int64_t time_ps = client.signal_ps();
  if (time_ps > client.rank_time_ps()) return false;
  if (timer != nullptr && !timer->is_cpu && timer->due_ps < time_ps) return false;
  const ipc::SentSignal sent = *client.sent_signal();
  client.pop_signal();
  last_signal_ = sent.number;
  tell_sent(sent, blocked);
  return true;
}

bool VirtualTimers::fire(ipc::Client& client, bool stops_at_handler, const sigset_t* blocked) {
  bool is_interrupted = false;
  const SignalGate gate;
  const sigset_t& after = blocked != nullptr ? *blocked : gate.outside();
  for (;;) {
    VirtualTimer told;
    bool has_passed = false;
    {
      const Guard guard(*this);
      VirtualTimer* const timer = find_due(client);
      has_passed = pass_on_sent(client, timer, after);
      if (timer != nullptr && !has_passed) {
        const std::int64_t late_ps = time_of(client, *timer) - timer->due_ps;
        const std::int64_t ends = timer->interval_ps == 0 ? 1 : 1 + late_ps / timer->interval_ps;
        const bool is_counted = timer->kind == TimerKind::file || timer->kind == TimerKind::silent;
        const std::int64_t held = ends_while_stopped(client, *timer);
        pass_ends(*timer, is_counted || ends > most_late_ends ? ends : std::max<std::int64_t>(held, 1));
        timer->missed = static_cast<int>(std::max<std::int64_t>(held - 1, 0));
        if (timer->kind == TimerKind::process || timer->kind == TimerKind::signal) {
          note_signal(*timer);
          send_end(*timer, after);
        }
        if (timer->is_in_host) {
          set_host_timer(*timer, {});
          if (timer->due_ps != never_ps) run_in_host(*timer);
        }
        told = *timer;
      }
      refresh(client);
    }
    if (told.kind == TimerKind::none && !has_passed) return is_interrupted;
    if (told.kind == TimerKind::thread || told.kind == TimerKind::file) tell_end(told, after);
    if (told.kind == TimerKind::file) client.tell_readers(ipc::ThreadOrder::Readers::of_process);
    is_interrupted = SignalGate::let_in(after) || is_interrupted;
    if (is_interrupted && stops_at_handler) return true;
  }
}

// From now on, until take_from_host().
void VirtualTimers::run_in_host(VirtualTimer& timer) {
  const std::int64_t passed_ps = (ipc::host_now_ns() - pace_began_ns_) * ps_per_ns;
  const std::int64_t left_ps = timer.due_ps - pace_began_ps_ - passed_ps;
  timer.is_in_host = true;
  // The host gives a signal that the first thread blocks to another one. It lets them in a moment later.
  constexpr std::int64_t moment_ps = 100'000 * ps_per_ns;
  const std::int64_t least_ps = ipc::is_single_threaded() ? ps_per_ns : moment_ps;
  set_host_timer(timer, {.left_ps = std::max(left_ps, least_ps), .interval_ps = timer.interval_ps});
}

// Takes over what the timer has done in the host. Returns when it last ended there, or -1 if it has not.
std::int64_t VirtualTimers::take_from_host(VirtualTimer& timer, bool stops) {
  if (timer.due_ps == never_ps) return -1;
  const TimerSetting host = get_host_timer(timer);
  const std::int64_t passed_ps = (ipc::host_now_ns() - pace_began_ns_) * ps_per_ns;
  std::int64_t ends = host.left_ps == 0 ? 1 : 0;
  if (timer.interval_ps != 0) {
    const std::int64_t next_ps = pace_began_ps_ + passed_ps + host.left_ps;
    ends = std::max<std::int64_t>((next_ps - timer.due_ps + timer.interval_ps / 2) / timer.interval_ps, 0);
  }
  const std::int64_t last_ps = timer.due_ps + (ends - 1) * timer.interval_ps;
  if (ends > 0) {
    pass_ends(timer, ends);
    if (timer.kind == TimerKind::process || timer.kind == TimerKind::signal) note_signal(timer);
    if (timer.kind == TimerKind::signal) {
      timer.overrun = ipc::host_call(SYS_timer_getoverrun, reinterpret_cast<std::intptr_t>(timer.id), 0);
      timer.is_queued = true;
    }
  }
  // A file that can be read stays so.
  if (stops && (timer.kind != TimerKind::file || timer.ends == 0)) set_host_timer(timer, {});
  return ends > 0 ? last_ps : -1;
}

void VirtualTimers::inherit(ipc::Client& client, const ipc::LeftAlarm& alarm) {
  const Guard guard(*this);
  has_adopted_ = true;
  itimer(ITIMER_REAL).due_ps = alarm.due_ps == 0 ? never_ps : alarm.due_ps;
  itimer(ITIMER_REAL).interval_ps = alarm.interval_ps;
  refresh(client);
}

void VirtualTimers::leave(ipc::Client& client, bool is_followed) {
  const Guard guard(*this);
  const VirtualTimer& alarm = itimer(ITIMER_REAL);
  const std::int64_t due_ps = alarm.due_ps == never_ps ? 0 : alarm.due_ps;
  if (is_followed) left_alarm(client) = {.due_ps = due_ps, .interval_ps = alarm.interval_ps};
  for_each([&](VirtualTimer& timer) {
    if (is_followed && &timer == &alarm) return;
    const bool is_kept = timer.kind == TimerKind::process || timer.kind == TimerKind::file;
    if (is_kept && timer.due_ps != never_ps)
      set_host_timer(timer, {.left_ps = left_ps(client, timer), .interval_ps = timer.interval_ps});
  });
}

void VirtualTimers::take_back(ipc::Client& client) {
  const Guard guard(*this);
  left_alarm(client) = {};
  for_each([](VirtualTimer& timer) {
    const bool is_kept =
        timer.kind == TimerKind::process || (timer.kind == TimerKind::file && timer.ends == 0);
    if (is_kept && timer.due_ps != never_ps) set_host_timer(timer, {});
  });
}

void VirtualTimers::begin_pace(ipc::Client& client) {
  const Guard guard(*this);
  if (paces_++ == 0) {
    pace_began_ns_ = ipc::host_now_ns();
    pace_began_ps_ = client.rank_time_ps();
  }
  for_each([&](VirtualTimer& timer) {
    if (timer.due_ps != never_ps && !timer.is_cpu && !timer.is_in_host && timer.ends == 0) run_in_host(timer);
  });
  expect_early_signals(guard.outside());
}

// Signals may come before the thread waits.
void VirtualTimers::expect_early_signals(const sigset_t& blocked) {
  if (!is_first_thread()) return WaitInterrupter::forget_in_first_thread();
  WaitInterrupter::forget_later();
  const std::int64_t passed_ns = ipc::host_now_ns() - pace_began_ns_;
  for_each([&](const VirtualTimer& timer) {
    const bool sends = timer.kind == TimerKind::process || timer.kind == TimerKind::signal;
    const bool is_for_other = timer.receiver != 0 && timer.receiver != getpid();
    if (!sends || is_for_other || !timer.is_in_host || timer.due_ps == never_ps) return;
    const std::int64_t after_ns = (timer.due_ps - pace_began_ps_) / ps_per_ns - passed_ns;
    WaitInterrupter::expect(timer.signal, std::max<std::int64_t>(after_ns, 0), blocked);
  });
}

void VirtualTimers::end_pace(ipc::Client& client) {
  std::int64_t last_ps = -1;
  {
    const Guard guard(*this);
    if (--paces_ > 0) return;
    WaitInterrupter::end();  // also if a handler has started a thread
    for_each([&](VirtualTimer& timer) {
      if (!timer.is_in_host) return;
      last_ps = std::max(last_ps, take_from_host(timer, true));
      timer.is_in_host = false;
    });
    refresh(client);
  }
  if (last_ps > client.time_ps()) client.sleep(last_ps - client.time_ps());
}

void VirtualTimers::catch_up(ipc::Client& client) {
  std::int64_t last_ps = -1;
  {
    const Guard guard(*this);
    for_each([&](VirtualTimer& timer) {
      if (timer.is_in_host) last_ps = std::max(last_ps, take_from_host(timer, false));
    });
    refresh(client);
  }
  if (last_ps > client.time_ps()) client.sleep(last_ps - client.time_ps());
}

HostPace::HostPace(ipc::Client* client, Ender ender) {
  if (client == nullptr || is_paced) return;
  VirtualTimers& timers = VirtualTimers::of_process();
  if (timers.first_ps() == never_ps) return;
  if (client->has_due_timer()) timers.fire(*client);
  if (!ipc::is_single_threaded()) {
    timers.keep_time(*client);
    // Signals go to the first thread.
    if (ender == Ender::thread || !is_first_thread()) return;
  }
  client_ = client;
  frame_ = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  own_pace = this;
  is_paced = true;  // handlers run from the begin of the pace on
  timers.begin_pace(*client);
}

HostPace::~HostPace() {
  if (client_ == nullptr) return;
  const int error = errno;
  is_paced = false;
  VirtualTimers::of_process().end_pace(*client_);
  errno = error;
}

void leave_pace_for(std::uintptr_t stack_end) {
  stack_t alternate{};
  sigaltstack(nullptr, &alternate);
  const bool is_on_alternate = (alternate.ss_flags & SS_ONSTACK) != 0;
  const auto begin = is_on_alternate ? reinterpret_cast<std::uintptr_t>(alternate.ss_sp)
                                     : reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t end = is_on_alternate ? begin + alternate.ss_size : own_pace->frame_;
  if (begin <= stack_end && stack_end <= end) return;  // within the handler
  const int error = errno;
  is_paced = false;
  VirtualTimers::of_process().end_pace(*own_pace->client_);
  errno = error;
}

void catch_up_pace(ipc::Client& client) {
  is_paced = false;
  VirtualTimers::of_process().catch_up(client);
  is_paced = true;
}

APENET_EXPORT void apenet_time_begins() {
  note_rank_process();
  follow_direct_calls();
  if (ipc::Client* client = ipc::Client::attached()) VirtualTimers::of_process().adopt(*client);
  begin_cycle_counter();
  end_early_waits();
}

APENET_EXPORT void apenet_goes_on(const ipc::LeftAlarm* alarm) {
  begin_cycle_counter();
  VirtualTimers::of_process().inherit(*ipc::Client::known(), *alarm);
}

APENET_EXPORT void apenet_timers_due() {
  ipc::Client* client = ipc::Client::attached();
  if (client == nullptr || client->block().clock.held()) return;
  const int error = errno;
  VirtualTimers::of_process().fire(*client);
  errno = error;
}

}  // namespace apenet::shim
