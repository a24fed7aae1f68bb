// Client's threads with clocks of their own. docs/internals/threads.md states the rule.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <string>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace apenet::ipc {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
// Between two looks of a sleeping thread.
constexpr std::int64_t longest_pause_ns = 20 * ns_per_ms;

timespec pause_of(std::int64_t ns) {
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

// The shim and the provider map the entries at two addresses, so that the thread sanitizer does not see their
// order.
void order_before_ring([[maybe_unused]] pthread_cond_t* condition) {
#if defined(__SANITIZE_THREAD__)
  if (condition != nullptr) __tsan_release(condition);
#endif
}

void order_after_wait([[maybe_unused]] pthread_cond_t* condition) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(condition);
#endif
}

// A look takes some 20 us for each thread. Of many threads, those that sleep are not looked at: a handler of
// a signal may run in one of them unseen.
class Judge : public OutsideJudge {
 public:
  explicit Judge(const ThreadClocks& threads) : threads_(threads) {}
  [[nodiscard]] bool is_asleep(std::int32_t thread) const override {
    constexpr std::uint32_t many = 64;
    return threads_.used() > many && thread != getpid() && threads_.is_asleep(thread);
  }

 protected:
  ~Judge() = default;
  [[nodiscard]] const ThreadClocks& threads() const { return threads_; }

 private:
  const ThreadClocks& threads_;
};

// The first thread may wait for something outside. Others mostly serve what needs none of the program's time.
class FirstThreadJudge final : public Judge {
 public:
  using Judge::Judge;
  [[nodiscard]] bool may_end_outside(const BlockedThread& thread) const override {
    return thread.id == getpid() && !thread.is_in_futex && !threads().waits_inside(thread.id);
  }
};

// Any thread may end what the judging one waits for.
class AllThreadsJudge final : public Judge {
 public:
  using Judge::Judge;
  [[nodiscard]] bool may_end_outside(const BlockedThread& thread) const override {
    const bool serves = apenet_serves_library != nullptr && apenet_serves_library(thread.id);
    return !thread.is_in_futex && !threads().waits_inside(thread.id) && !serves;
  }
};

Others look_at_threads(const ThreadClocks& threads, bool waits_for_any) {
  if (waits_for_any) {
    const AllThreadsJudge judge(threads);
    return look_at_others(&judge);
  }
  const FirstThreadJudge judge(threads);
  return look_at_others(&judge);
}

}  // namespace

// nullptr: it takes part in the process's clock.
ThreadClock* Client::own_clock() {
  if (__libc_single_threaded != 0 || !block_->threads.in_use()) return nullptr;
  ThreadClock* own = block_->threads.find(pthread_self());
  return own != nullptr && own->own_ps != ThreadClock::of_rank_ps ? own : nullptr;
}

// Whoever has unblocked the thread in the host had done so by the process's clock.
std::int64_t Client::thread_time_ps() {
  ThreadClock* own = own_clock();
  if (own == nullptr) return process_time_ps();
  if (const std::int64_t switches = own_switches(); switches != own->switches) {
    own->switches = switches;
    own->own_ps = std::max(own->own_ps.load(), process_time_ps());
  }
  return own->own_ps;
}

bool Client::charge_own(std::int64_t ps) {
  ThreadClock* own = own_clock();
  if (own == nullptr) return false;
  own->own_ps = std::min(thread_time_ps() + ps, end_of_time_ps);
  return true;
}

void Client::meet_others() {
  if (ThreadClock* own = own_clock()) own->own_ps = std::max(own->own_ps.load(), process_time_ps());
}

// The thread does something that others see: from now on it takes part in the process's clock.
void Client::rejoin() {
  ThreadClock* own = own_clock();
  if (own == nullptr) return;
  const std::int64_t own_ps = thread_time_ps();
  own->own_ps = ThreadClock::of_rank_ps;
  if (block_->identity.finalised != 0) return;
  Clock& clock = block_->clock;
  clock.slept_ps.add(clock.advance_to(own_ps));
}

// nullptr: there is no room.
ThreadClock* Client::find_entry() {
  const pthread_t self = pthread_self();
  ThreadClock* own = block_->threads.find(self);
  if (own == nullptr) own = block_->threads.add(self);
  if (own != nullptr) own->id = own_thread_id();
  return own;
}

ThreadClock* Client::enter_threads() {
  ThreadClock* own = find_entry();
  if (own == nullptr) {
    refuse("rank " + std::to_string(rank_) + " has more than " + std::to_string(ThreadClocks::room) +
           " threads, and one of them sleeps or waits with a time limit: expected at most " +
           std::to_string(ThreadClocks::room) + " threads, whose clocks the run keeps apart");
  }
  return own;
}

ThreadClock* Client::create_thread() {
  ThreadClock* clock = block_->threads.add(pthread_t{});
  if (clock != nullptr) clock->own_ps = thread_time_ps();
  return clock;
}

void Client::begin_thread(ThreadClock& clock) {
  // The identity of a thread is used again after its end.
  if (ThreadClock* before = block_->threads.find(pthread_self())) block_->threads.drop(*before);
  clock.switches = own_switches();
  block_->threads.set_thread(clock, pthread_self());
  clock.id = own_thread_id();
  block_->threads.note_change();
}

ThreadClock* Client::begin_inside_wait() {
  ThreadClock* own = find_entry();
  if (own == nullptr) return nullptr;
  own->is_passed_over = 1;  // nobody waits for what it does before it sleeps
  own->waits_inside = 1;
  return own;
}

void Client::wake_thread(ThreadClock& clock, std::int64_t own_ps) {
  clock.own_ps = own_ps;
  clock.switches = own_switches();
  clock.cpu_ns = cpu_ns_of(clock.id);
  clock.is_in_host = clock.waits_inside = clock.is_rung = clock.is_passed_over = clock.checks = 0;
  clock.state = ThreadClock::acts;
  block_->threads.note_change();
  futex_wake(block_->threads.changes());
  block_->clock.ring();
  if (ThreadClock* next = block_->threads.first_asleep()) ring_bell(*next);
}

// Only the thread that is the next to wake hears the clock. The others wait until it is their turn.
void Client::ring_bell(ThreadClock& clock) {
  ++clock.bell;
  futex_wake(clock.bell);
}

void Client::ring_sleepers() {
  block_->clock.ring();
  block_->threads.for_each([](ThreadClock& clock) {
    if (ThreadClocks::sleeps(clock)) ring_bell(clock);
  });
}

// How a sleeping thread looks for the time to wake: at intervals of real time that grow, and not for ever.
class Client::Patience {
 public:
  explicit Patience(const Block& block) : block_(block), began_ns_(host_now_ns()) { restart(); }
  // Virtual time stands still, and the process has computed for long: a thread may spin until this one wakes.
  [[nodiscard]] bool is_over() {
    constexpr std::int64_t most_cpu_ns = 10'000 * ns_per_ms;
    if (calls_ != block_.progress.calls() || now_ps_ != block_.clock.now_ps()) restart();
    return process_cpu_ns() - cpu_ns_ > most_cpu_ns;
  }
  [[nodiscard]] std::int64_t began_ns() const { return began_ns_; }
  [[nodiscard]] timespec next(std::int64_t longest_ns) {
    const timespec pause = pause_of(pause_ns_);
    pause_ns_ = std::min(2 * pause_ns_, longest_ns);
    return pause;
  }
  // Waits as futex_wait(), or for files. With a time limit, the host always tells of a signal that was
  // handled.
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec& pause,
            OwnFileWait* files) {
    if (files == nullptr) {
      is_interrupted_ = futex_wait(word, expected, &pause) < 0 && errno == EINTR;
      return;
    }
    const OwnFileWait::Outcome outcome = files->wait(pause);
    is_interrupted_ = outcome == OwnFileWait::Outcome::interrupted;
    are_ready_ = outcome == OwnFileWait::Outcome::ready;
  }
  [[nodiscard]] bool is_interrupted() const { return is_interrupted_; }
  [[nodiscard]] bool are_ready() const { return are_ready_; }

 private:
  static std::int64_t process_cpu_ns() {
    timespec used{};
    host_call(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * std::int64_t{1'000'000'000} + used.tv_nsec;
  }
  void restart() {
    calls_ = block_.progress.calls();
    now_ps_ = block_.clock.now_ps();
    cpu_ns_ = process_cpu_ns();
  }

  const Block& block_;
  std::int64_t began_ns_;
  std::int64_t pause_ns_ = ns_per_ms / 20;
  std::uint32_t calls_ = 0;
  std::int64_t now_ps_ = 0;
  std::int64_t cpu_ns_ = 0;
  bool is_interrupted_ = false;
  bool are_ready_ = false;
};

// A thread that is cancelled in its sleep leaves it at the time at which it is.
class Client::Waking {
 public:
  Waking(Client& client, ThreadClock& own) : client_(client), own_(own) {}
  Waking(const Waking&) = delete;
  Waking& operator=(const Waking&) = delete;
  ~Waking() {
    if (!ThreadClocks::sleeps(own_)) return;
    client_.wake_thread(own_, std::max(own_.own_ps.load(), client_.process_time_ps()));
  }

 private:
  Client& client_;
  ThreadClock& own_;
};

// A thread may have been cancelled, and looks for that when it wakes.
void Client::note_cancel() {
  ring_sleepers();
}

std::int64_t Client::sleep(std::int64_t ps, Watched watched) {
  if (__libc_single_threaded != 0) {
    sleep_together(ps);
    return 0;
  }
  ThreadClock* own = enter_threads();
  const std::int64_t now_ps = thread_time_ps();
  const std::int64_t until_ps = now_ps + std::min(ps, end_of_time_ps - now_ps);
  fall_asleep(*own, until_ps);
  own->waits_inside = watched.files != nullptr ? 1 : 0;
  const Waking waking(*this, *own);
  Clock& clock = block_->clock;
  Patience patience(*block_);
  for (bool sleeps = true; sleeps;) {
    // A signal's handler may have slept.
    if (own->state != ThreadClock::sleeps || own->until_ps != until_ps) fall_asleep(*own, until_ps);
    const Heard heard{.clock = clock.rings(), .bell = own->bell};
    pthread_testcancel();
    clock.lower_alarm(until_ps);
    sleeps = process_time_ps() < until_ps && let_time_pass(*own, heard, patience, watched.files);
    const bool has_changed = watched.word != nullptr && *watched.word != watched.value;
    if (patience.is_interrupted() || patience.are_ready() || has_changed) {
      const std::int64_t woken_ps = std::clamp(process_time_ps(), now_ps, until_ps);
      wake_thread(*own, woken_ps);
      return until_ps - woken_ps;
    }
  }
  wake_thread(*own, until_ps);
  return 0;
}

// All threads of the process sleep, as far as anybody knows. With several, the clock moves when all that
// happens before is known: another one may wake by it.
void Client::sleep_together(std::int64_t ps) {
  Clock& clock = block_->clock;
  if (block_->identity.finalised != 0) {
    clock.afterwards_ps.add(ps);
    clock.slept_ps.add(ps);
    return;
  }
  block_->lock.acquire();
  if (is_suspended_or_overlapped()) reenter();
  clock.acted_ps.set(clock.now_ps());
  if (__libc_single_threaded != 0) {
    clock.slept_ps.add(clock.charge(ps));
    settle();
  } else {
    const std::int64_t until_ps = clock.now_ps() + std::min(ps, end_of_time_ps - clock.now_ps());
    if (until_ps >= clock.horizon_ps || until_ps == end_of_time_ps) wait(Wait::until, until_ps);
    clock.slept_ps.add(clock.advance_to(until_ps));
  }
  clock.acted_ps.set(0);
  block_->lock.unlock();
}

void Client::move_to(std::int64_t until_ps) {
  const std::int64_t ps = until_ps - process_time_ps();
  if (ps > 0) sleep_together(ps);
}

// The first of the sleeping threads to wake moves the process's clock, once no other thread can act before.
// Real time decides when it looks, not what it finds. Returns false if the thread need not sleep any more.
bool Client::let_time_pass(ThreadClock& own, Heard heard, Patience& patience, OwnFileWait* files) {
  ThreadClocks& threads = block_->threads;
  // A wait for files does not hear the ring.
  constexpr std::int64_t longest_unheard_ns = 5 * ns_per_ms;
  if (const ThreadClocks::Earlier earlier = threads.earlier_than(own); earlier.first != nullptr) {
    // Rarely if many are earlier: each look disturbs that of the first.
    const std::int64_t rare_ns = 500 * ns_per_ms * earlier.count;
    const std::uint32_t changes = threads.changes();
    patience.wait(own.bell, heard.bell, pause_of(files != nullptr ? longest_unheard_ns : rare_ns), files);
    pass_over_if_left(*earlier.first, changes);
    return true;
  }
  const std::int64_t now_ps = process_time_ps();
  if (ThreadClock* other = threads.due(now_ps, &own)) {
    await(*other);
    return true;
  }
  const std::uint32_t changes = threads.changes();
  const std::int64_t first_ps = threads.earliest_ps();
  timespec pause = patience.next(files != nullptr ? longest_unheard_ns : longest_pause_ns);
  // A thread that waits in the simulation moves the clock when it comes to that.
  Others others = threads.any_in_simulation() ? Others::act : look_at_threads(threads, files != nullptr);
  if (others == Others::outside) {
    // As long as on the machine, and in one piece, so that the simulator sees that the rank sleeps.
    constexpr std::int64_t longest_ns = 2'000 * ns_per_ms;
    const std::int64_t left_ns = patience.began_ns() + (own.until_ps - now_ps) / 1000 - host_now_ns();
    if (left_ns <= 0) others = Others::blocked;
    pause = pause_of(std::clamp<std::int64_t>(left_ns, 0, longest_ns));
  }
  if (others == Others::blocked && threads.changes() == changes && !threads.any_in_simulation()) {
    if (files != nullptr) patience.wait(block_->clock.rings(), heard.clock, pause_of(0), files);
    if (!patience.is_interrupted() && !patience.are_ready()) move_to(first_ps);
    return true;
  }
  if (others == Others::act && !threads.any_in_simulation() && patience.is_over()) {
    block_->lock.note_several();
    return false;
  }
  patience.wait(block_->clock.rings(), heard.clock, pause, files);
  return true;
}

// A handler of a signal may leave a sleep by longjmp, which nobody sees: until the thread sleeps again, it
// would be the first to wake.
void Client::pass_over_if_left(ThreadClock& sleeper, std::uint32_t changes) {
  if (!is_blocked_beside(sleeper.id, {reinterpret_cast<const std::byte*>(block_), sizeof(Block)})) return;
  if (block_->threads.changes() != changes) return;
  sleeper.is_passed_over = 1;
  sleeper.state = ThreadClock::acts;
  block_->threads.note_change();
  block_->clock.ring();
}

// From now on the thread acts at until_ps, unless another one wakes it.
void Client::fall_asleep(ThreadClock& clock, std::int64_t until_ps) {
  clock.until_ps = until_ps;
  clock.since_ps = process_time_ps();
  clock.cpu_ns = cpu_ns_of(clock.id);
  clock.is_passed_over = clock.checks = clock.is_rung = 0;
  clock.state = ThreadClock::sleeps;
  block_->threads.note_change();
  futex_wake(block_->threads.changes());
}

// A wait that may end at any time of the host holds nobody up, and nobody ends it.
ThreadClock* Client::begin_host_wait(std::int64_t until_ps, bool is_outside, pthread_cond_t* condition) {
  ThreadClock* own = enter_threads();
  own->is_in_host = 1;
  fall_asleep(*own, std::min(until_ps + header_->epoch_ps, end_of_time_ps));
  if (is_outside) own->is_passed_over = 1;
  order_before_ring(condition);
  own->condition = condition;
  return own;
}

bool Client::is_first_to_act(const ThreadClock& wait) {
  ThreadClocks& threads = block_->threads;
  const std::uint32_t changes = threads.changes();
  return threads.earliest_ps() >= wait.until_ps && !threads.any_in_simulation() &&
         look_at_threads(threads, true) == Others::blocked && threads.changes() == changes &&
         !threads.any_in_simulation();
}

void Client::end_host_wait(ThreadClock& wait, std::int64_t until_ps, bool timed_out) {
  wait.condition = nullptr;
  while (wait.is_rung == 2) continue;  // another thread is about to signal it
  until_ps = std::min(until_ps + header_->epoch_ps, end_of_time_ps);
  ThreadClocks& threads = block_->threads;
  const std::int64_t now_ps = process_time_ps();
  const bool may_move = timed_out && until_ps > now_ps && !threads.any_in_simulation();
  if (may_move && threads.earliest_ps() >= until_ps && look_at_threads(threads, false) == Others::blocked &&
      !threads.any_in_simulation()) {
    move_to(until_ps);
  } else if (may_move) {
    block_->lock.note_several();  // it ended by the host's time, beside a thread that has not come so far
  }
  const std::int64_t own_ps = wait.own_ps;
  const bool is_own = timed_out || own_ps != ThreadClock::of_rank_ps;
  const std::int64_t woken_ps = timed_out ? until_ps : process_time_ps();
  wake_thread(wait, is_own ? std::max(own_ps, woken_ps) : ThreadClock::of_rank_ps);
}

// Called before the thread waits for an event that it knows, or for one that will come. Returns true if it
// should come back later, because at this time other threads of the process act, or at one before the event,
// or up to known_ps, until when no other event comes.
bool Client::lets_others_act(const Event* event, std::int64_t known_ps) {
  ThreadClocks& threads = block_->threads;
  Clock& clock = block_->clock;
  if (clock.held() || block_->progress.leaves() || __libc_single_threaded != 0) return false;
  ThreadClock* own = threads.find(pthread_self());
  if (own != nullptr) own->is_passed_over = 1;  // others need not wait for it
  clock.ring_if_due();
  if (ThreadClock* other = threads.unsettled(clock.now_ps(), own)) {
    threads.is_awaited = 1;
    await(*other);
    return true;
  }
  threads.is_awaited = 0;
  if (event != nullptr) known_ps = event->time_ps;
  const std::int64_t first_ps = threads.earliest_ps();
  if (first_ps > known_ps) return false;
  clock.wait_to(first_ps);
  return true;
}

// Gives a thread that acts a moment, and finds out whether it can go on.
void Client::await(ThreadClock& other) {
  constexpr timespec moment{.tv_sec = 0, .tv_nsec = 50'000};
  constexpr std::uint32_t most_checks = 20;  // a lock that this thread holds, it has lent several times since
  constexpr std::int64_t most_cpu_ns = 100 * ns_per_ms;
  ThreadClocks& threads = block_->threads;
  if (block_->lock.is_contended()) return;
  const std::uint32_t changes = threads.changes();
  ring_condition(other);
  futex_wait(threads.changes(), changes, &moment);
  const std::int32_t id = other.id;
  if (threads.changes() != changes || id == 0) return;
  switch (state_of_thread(id)) {
    case ThreadState::ended:
      if (threads.changes() == changes) threads.drop(other);
      break;
    case ThreadState::runs:
      if (cpu_ns_of(id) - other.cpu_ns < most_cpu_ns) break;
      block_->lock.note_several();
      other.is_passed_over = 1;
      break;
    case ThreadState::limited:
      if (ThreadClocks::sleeps(other)) break;  // it looks at the clock by itself
      [[fallthrough]];
    case ThreadState::blocked:
      if (++other.checks >= most_checks) other.is_passed_over = 1;
      break;
  }
}

// Its wait in the host ends: its time has come.
void Client::ring_condition(ThreadClock& clock) {
  std::uint32_t is_rung = clock.is_rung;
  if (clock.condition == nullptr || is_rung == 2 || !clock.is_rung.compare_exchange_strong(is_rung, 2))
    return;
  if (pthread_cond_t* condition = clock.condition) {
    order_after_wait(condition);
    pthread_cond_broadcast(condition);
  }
  clock.is_rung = 1;
}

}  // namespace apenet::ipc
