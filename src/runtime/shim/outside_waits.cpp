#include "runtime/shim/outside_waits.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/fruitless_sleeps.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/signal_gate.hpp"

namespace apenet::shim {
namespace {

using ipc::bit_of;
using ipc::host_call;
using ipc::OutsideCause;

// Virtual time of sleeps between two checks of the family and the threads. While they are found idle, the
// interval grows: a check takes some 20 us for each process.
constexpr std::int64_t least_interval_ps = 10'000'000;
constexpr std::int64_t most_interval_ps = 10'000'000'000;

// Real time between two checks during a sleep.
constexpr std::int64_t first_slice_ns = 200'000;
constexpr std::int64_t most_slice_ns = 10'000'000;

// Virtual time that must pass in a wait for a child or thread to make it a sleep. Reads of the clock take
// less.
constexpr std::int64_t least_sleep_of_other_ps = 1'000'000'000;

constexpr std::size_t kept_path_bytes = 256;

// What a thread has checked since its last sleep, and before that.
struct OutsideChecks {
  std::uint32_t certain = 0;  // a set of kinds: the thread waits for them for certain
  OutsideCause what = OutsideCause::none;
  std::uint64_t key = 0;               // the last check's, or 0
  std::uint64_t key_before = 0;        // that of the last check before the last sleep
  std::uint64_t work_before = 0;       // what the rank had done by then
  int process = 0;                     // the process that was last checked
  bool is_there = false;               // whether the file that was last checked is there
  std::uint64_t subject = 0;           // the last check's, whether a sleep came after it or not; 0: forgotten
  bool has_missed = false;             // that check has not found it
  std::uint64_t work_at_check = 0;     // what the rank had done by then
  std::int64_t folder_changed_ns = 0;  // if it was of a folder: when that has changed last
  bool sleeps_by_other = false;        // the last sleep was a wait for another thread or process that slept
  bool waits_beside = false;           // in a wait without a limit for another thread
  std::int64_t wait_began_ps = 0;      // that wait, in virtual time
  std::int64_t wait_began_ns = 0;      // and in the host; 0: the thread had checked nothing
  std::int64_t owed_ps = 0;            // virtual time of sleeps whose real time has yet to pass
  std::int64_t interval_ps = least_interval_ps;
  std::array<char, kept_path_bytes> path{};  // the file that was last checked; empty if it is longer
};

constinit thread_local OutsideChecks outside_checks __attribute__((tls_model("initial-exec")));
constinit thread_local FruitlessSleeps fruitless_sleeps __attribute__((tls_model("initial-exec")));

bool has_checked() {
  return outside_checks.certain != 0 || outside_checks.key != 0 || fruitless_sleeps.has_asked();
}

// Real time that guesses have taken since the state that they depend on has changed.
struct Patience {
  std::atomic<std::uint64_t> state{0};
  std::atomic<std::int64_t> spent_ns{0};
};

Patience& patience() {
  static constinit Patience value;
  return value;
}

// Begins to count anew if the guess is about something else than the last one; 0: no guess.
void turn_patience_to(std::uint64_t state) {
  if (patience().state.exchange(state) != state) patience().spent_ns = 0;
}

// Changes when the rank sends or receives messages, or computes: a program that works between two checks of a
// file does not wait for it.
std::uint64_t work_of(ipc::Client& client) {
  const ipc::Block& block = client.block();
  const std::uint64_t messages = mixed(mixed(1, block.rings.request_head), block.rings.event_tail);
  return mixed(messages, static_cast<std::uint64_t>(block.clock.computed_ps.get()));
}

// How active the processes that the rank has started must be for it to wait for them. A thread that has not
// asked for them since its last sleep does not wait for a process that nobody may ever wake.
Activity least_activity() {
  return outside_checks.certain != 0 ? Activity::unknown : Activity::limited;
}

// Returns false if a signal has interrupted it.
bool sleep_in_host(std::int64_t ns) {
  const timespec duration{.tv_sec = ns / ns_per_s, .tv_nsec = ns % ns_per_s};
  timespec* const remaining = nullptr;
  return host_call(SYS_nanosleep, &duration, remaining) == 0;
}

// Nobody reads the note of a process that the rank has started: the run says of all of them at once that they
// do not repeat.
void note_host_decides(const ipc::Client& client) {
  if (client.is_own_block()) ipc::Client::order_table()->has_overtaken = true;
}

// A wait in which another has slept, without a check before it. Beside sleeps of its own, a thread that
// checks does so before these.
void watch_after_wait(ipc::Client& client, std::int64_t ps) {
  const bool sleeps_itself = !std::exchange(outside_checks.sleeps_by_other, true);
  if (sleeps_itself && fruitless_sleeps.watches()) return;
  fruitless_sleeps.begin_sleep();
  fruitless_sleeps.end_sleep(ps, work_of(client), false);
}

// The end of a wait in the order of the threads. began_ns: in the host; 0: the thread had checked nothing.
void end_wait_of_other(ipc::Client& client, std::int64_t ps, std::int64_t began_ns) {
  const int error = errno;
  if (began_ns != 0) {
    OutsideWait(client, ps, began_ns).pass(0);
    outside_checks.sleeps_by_other = true;
  } else {
    watch_after_wait(client, ps);
  }
  errno = error;
}

// The rank whose checks count, or nullptr.
ipc::Client* checking_client() {
  ipc::Client* client = ipc::Client::known();
  if (client == nullptr || !client->started() || host_calls > 0 || is_in_call()) return nullptr;
  return client;
}

std::uint64_t hash_of(const char* text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3U;
  return hash;
}

std::uint64_t subject_of(OutsideCause what, std::uint64_t key) {
  return mixed(static_cast<std::uint64_t>(what), key) | 1U;
}

void note_change(ipc::Client& client, OutsideCause what) {
  client.block().outside.changed |= bit_of(what);
  note_host_decides(client);
}

// Records the result of a check. A child or another process changes at a time of the host, whatever the rank
// does.
void note_answer(ipc::Client& client, OutsideCause what, std::uint64_t key, bool is_found) {
  OutsideChecks& own = outside_checks;
  const std::uint64_t subject = subject_of(what, key);
  const std::uint64_t work = work_of(client);
  const bool is_process = what == OutsideCause::child || what == OutsideCause::process;
  // A process that acts in the rank's order may have changed it.
  const bool is_of_host = is_process || (own.work_at_check == work && !thread_order().is_shared());
  if (own.subject == subject && own.has_missed == is_found && is_of_host) note_change(client, what);
  own.subject = subject;
  own.folder_changed_ns = 0;
  own.has_missed = !is_found;
  own.work_at_check = work;
}

std::uint64_t key_of_file(int folder, const char* path) {
  const bool is_relative = folder != AT_FDCWD && path[0] != '/';
  return mixed(hash_of(path), is_relative ? static_cast<std::uint64_t>(folder) : 0);
}

bool is_there(const char* path) {
  return host_call(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

}  // namespace

std::int64_t host_now_ns() {
  timespec now{};
  host_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * ns_per_s + now.tv_nsec;
}

bool counts_checks() {
  return checking_client() != nullptr;
}

void note_check(OutsideCause what, std::uint64_t key) {
  ipc::Client* client = checking_client();
  if (client == nullptr) return;
  if (what == OutsideCause::process) {
    if (client->is_rank_process(static_cast<std::uint32_t>(key))) return;
    outside_checks.process = static_cast<int>(key);
  }
  if (what == OutsideCause::child || what == OutsideCause::process || what == OutsideCause::connection) {
    outside_checks.certain |= bit_of(what);
  } else {
    outside_checks.what = what;
    outside_checks.key = key;
  }
  note_answer(*client, what, key, false);
}

void note_file_check(int folder, const char* path, Presence presence, std::uint64_t state) {
  ipc::Client* client = checking_client();
  if (client == nullptr || is_null(path)) return;
  OutsideChecks& own = outside_checks;
  const std::uint64_t key = key_of_file(folder, path);
  own.what = OutsideCause::file;
  own.key = mixed(key, state) | 1U;
  own.is_there = presence == Presence::there;
  note_answer(*client, OutsideCause::file, key, presence == Presence::there);
  const bool is_relative = folder != AT_FDCWD && path[0] != '/';
  const std::size_t length = strnlen(path, kept_path_bytes);
  const bool is_kept = length < kept_path_bytes && !is_relative && presence != Presence::refused;
  if (is_kept) std::memcpy(own.path.data(), path, length);
  own.path[is_kept ? length : 0] = '\0';
}

void note_folder_check(const char* path) {
  ipc::Client* client = checking_client();
  struct stat status {};
  const int error = errno;
  if (client == nullptr || is_null(path) ||
      host_call(SYS_newfstatat, AT_FDCWD, path, reinterpret_cast<std::uint64_t>(&status)) != 0) {
    errno = error;
    return;
  }
  OutsideChecks& own = outside_checks;
  const std::int64_t changed_ns = status.st_mtim.tv_sec * ns_per_s + status.st_mtim.tv_nsec;
  const std::uint64_t subject = subject_of(OutsideCause::file, key_of_file(AT_FDCWD, path));
  if (own.subject == subject && own.folder_changed_ns != 0 && own.folder_changed_ns != changed_ns &&
      own.work_at_check == work_of(*client) && !thread_order().is_shared())
    note_change(*client, OutsideCause::file);
  note_file_check(AT_FDCWD, path, Presence::there, 0);
  own.folder_changed_ns = changed_ns;
}

void note_found(OutsideCause what, std::uint64_t key) {
  if (outside_checks.subject == 0 || outside_checks.subject != subject_of(what, key)) return;
  if (ipc::Client* client = checking_client()) note_answer(*client, what, key, true);
}

void note_file_found(int folder, const char* path) {
  if (outside_checks.subject != 0 && !is_null(path))
    note_found(OutsideCause::file, key_of_file(folder, path));
}

void note_file_gone(int folder, const char* path) {
  if (outside_checks.subject == 0 || is_null(path)) return;
  const std::uint64_t key = key_of_file(folder, path);
  if (outside_checks.subject != subject_of(OutsideCause::file, key)) return;
  if (ipc::Client* client = checking_client()) note_answer(*client, OutsideCause::file, key, false);
}

void note_object_check(const char* name, bool is_found) {
  if (is_null(name)) return;
  if (is_found) {
    note_found(OutsideCause::object, hash_of(name));
  } else if (errno == ENOENT || errno == EACCES) {
    note_check(OutsideCause::object, hash_of(name));
  }
}

bool wants_possible_checks() {
  return fruitless_sleeps.watches();
}

void note_possible_check(const PossibleCheck& check) {
  if (checking_client() != nullptr) fruitless_sleeps.note(check);
}

void forget_check() {
  outside_checks.subject = 0;
}

void drop_check() {
  outside_checks.key = 0;
}

OutsideWait::OutsideWait(ipc::Client& client, std::int64_t ps) : client_(client), ps_(ps) {
  fruitless_sleeps.begin_sleep();
  OutsideChecks& own = outside_checks;
  own.owed_ps = std::min(own.owed_ps, ipc::end_of_time_ps - ps) + ps;
  const bool checks = has_checked();
  if ((!checks && own.owed_ps < own.interval_ps) || client.progress().leaves()) return;
  has_children_ = has_children();
  // Most ranks have no children, and check nothing.
  if (checks || has_children_) {
    began_ns_ = host_now_ns();
  } else {
    own.owed_ps = 0;
  }
}

OutsideWait::OutsideWait(ipc::Client& client, std::int64_t ps, std::int64_t began_ns)
    : client_(client), ps_(ps), began_ns_(client.progress().leaves() ? 0 : began_ns) {
  fruitless_sleeps.begin_sleep();
  OutsideChecks& own = outside_checks;
  own.owed_ps = std::min(own.owed_ps, ipc::end_of_time_ps - ps) + ps;
}

OutsideWait::Reason OutsideWait::find_reason() const {
  const OutsideChecks& own = outside_checks;
  const std::uint32_t certain = own.certain & ~bit_of(OutsideCause::child);
  if (certain != 0) return {.what = static_cast<OutsideCause>(std::countr_zero(certain))};
  if (has_children_) {
    const Family family = read_family();
    if (family.activity >= least_activity()) {
      return {.what = OutsideCause::child,
              .is_guess = own.certain == 0,
              .works = family.activity == Activity::works,
              .subject = family.children,
              .state = family.descendants};
    }
  }
  if (own.key != 0 && own.key == own.key_before && own.work_before == work_of(client_))
    return {.what = own.what, .is_guess = true, .subject = own.key};
  const PossibleCheck* const check = fruitless_sleeps.repeated(work_of(client_));
  if (check != nullptr) return {.what = check->what, .is_guess = true, .subject = check->key, .check = check};
  return {};
}

// Whether the rank still waits, after some real time.
bool OutsideWait::holds(Reason& reason) const {
  const OutsideChecks& own = outside_checks;
  switch (reason.what) {
    case OutsideCause::child: {
      const Family family = read_family();
      reason.works = family.activity == Activity::works;
      return family.descendants == reason.state && family.activity >= least_activity();
    }
    case OutsideCause::process:
      return host_call(SYS_kill, own.process, 0) == 0 || errno == EPERM;
    case OutsideCause::file:
      return reason.check != nullptr || own.path[0] == '\0' || is_there(own.path.data()) == own.is_there;
    default:
      return true;
  }
}

// Takes real time until all that is owed has passed, or until what the rank waits for has changed.
void OutsideWait::take(Reason reason) {
  OutsideChecks& own = outside_checks;
  ipc::OutsideNote& note = client_.block().outside;
  if (reason.check != nullptr) {
    if (reason.what == OutsideCause::call) note.call = reason.check->number;
    own.owed_ps =
        std::max(own.owed_ps, std::min(fruitless_sleeps.owed_ps(), ipc::end_of_time_ps - ps_) + ps_);
  }
  const std::int64_t owed_ns = own.owed_ps / ps_per_ns;
  std::int64_t slice_ns = first_slice_ns;
  bool has_changed = false;
  bool is_interrupted = false;
  std::int64_t passed_ns = host_now_ns() - began_ns_;
  note.now = reason.what;
  while (passed_ns < owed_ns && !has_changed && !is_interrupted) {
    if (reason.is_guess && patience().spent_ns >= client_.header().outside_patience_ns) {
      note.given_up |= bit_of(reason.what);
      break;
    }
    is_interrupted = !sleep_in_host(std::min(slice_ns, owed_ns - passed_ns));
    const std::int64_t before_ns = std::exchange(passed_ns, host_now_ns() - began_ns_);
    if (reason.is_guess && !reason.works) patience().spent_ns += passed_ns - before_ns;
    slice_ns = std::min(2 * slice_ns, most_slice_ns);
    has_changed = passed_ns < owed_ns && !holds(reason);
  }
  note.now = OutsideCause::none;
  note.waited |= bit_of(reason.what);
  note_host_decides(client_);
  // The program may have checked something else in the handler of the signal. If it goes on to wait, it
  // sleeps for the rest, too.
  own.owed_ps = is_interrupted ? std::max<std::int64_t>(owed_ns - passed_ns, 0) * ps_per_ns : 0;
}

std::optional<std::int64_t> OutsideWait::sleep_beside_children() {
  if (!has_children_ || began_ns_ == 0) return {};
  Reason reason = find_reason();
  if (reason.what != OutsideCause::child) return {};
  turn_patience_to(reason.is_guess ? reason.subject : 0);
  OutsideChecks& own = outside_checks;
  ipc::OutsideNote& note = client_.block().outside;
  const std::int64_t owed_before_ps = own.owed_ps - ps_;
  std::int64_t slept_ps = 0;
  std::int64_t left_ps = 0;
  std::int64_t slice_ps = first_slice_ns * ps_per_ns;
  bool is_interrupted = false;
  bool has_changed = false;
  const SignalGate gate;  // opened while the thread sleeps in the host
  while (slept_ps < ps_ && !is_interrupted && !has_changed) {
    const std::int64_t part_ps = std::min(slice_ps, ps_ - slept_ps);
    left_ps = client_.sleep(part_ps);
    slept_ps += part_ps - left_ps;
    is_interrupted = left_ps > 0;
    slice_ps = std::min(2 * slice_ps, most_slice_ns * ps_per_ns);
    const std::int64_t before_ns = host_now_ns();
    const std::int64_t ahead_ns = (owed_before_ps + slept_ps) / ps_per_ns - (before_ns - began_ns_);
    if (is_interrupted) break;
    if (ahead_ns > 0 && reason.is_guess && patience().spent_ns >= client_.header().outside_patience_ns) {
      note.given_up |= bit_of(reason.what);
      break;
    }
    note.now = reason.what;
    is_interrupted = SignalGate::let_in(gate.outside(), std::max<std::int64_t>(ahead_ns, 0));
    note.now = OutsideCause::none;
    if (reason.is_guess && !reason.works) patience().spent_ns += host_now_ns() - before_ns;
    has_changed = !is_interrupted && slept_ps < ps_ && !holds(reason);
  }
  note.waited |= bit_of(reason.what);
  note_host_decides(client_);
  // The host shows a child's end a moment before it sends the signal.
  constexpr std::int64_t moment_ns = 1'000'000;
  if (has_changed) is_interrupted = SignalGate::let_in(gate.outside(), moment_ns);
  if (!is_interrupted) slept_ps = ps_ - (slept_ps < ps_ ? client_.sleep(ps_ - slept_ps) : 0);
  own.owed_ps = 0;
  own.interval_ps = least_interval_ps;
  end_checks(true);
  return ps_ - slept_ps;
}

void OutsideWait::pass(std::int64_t left_ps) {
  OutsideChecks& own = outside_checks;
  ps_ -= left_ps;
  own.owed_ps = std::max<std::int64_t>(own.owed_ps - left_ps, 0);
  bool was_real = false;
  const int error = errno;
  if (began_ns_ != 0) {
    if (const Reason reason = find_reason(); reason.what != OutsideCause::none) {
      turn_patience_to(reason.is_guess ? reason.subject : 0);
      take(reason);
      was_real = true;
      own.interval_ps = least_interval_ps;
    } else {
      const bool may_repeat = own.key != 0;
      own.owed_ps = may_repeat ? ps_ : 0;
      own.interval_ps = std::min(2 * own.interval_ps, most_interval_ps);
    }
  }
  own.sleeps_by_other = false;
  end_checks(was_real);
  errno = error;
}

void OutsideWait::end_checks(bool was_real) {
  OutsideChecks& own = outside_checks;
  own.certain = 0;
  own.key_before = std::exchange(own.key, 0);
  own.work_before = work_of(client_);
  fruitless_sleeps.end_sleep(ps_, own.work_before, was_real);
}

OrderedWait::OrderedWait(ipc::Client* client) : client_(client) {
  if (client_ == nullptr) return;
  began_ps_ = now_ps(*client_);
  if (has_checked()) began_ns_ = host_now_ns();
}

void OrderedWait::expire() {
  if (client_ == nullptr || checking_client() != client_) return;
  end_wait_of_other(*client_, now_ps(*client_) - began_ps_, began_ns_);
}

void OrderedWait::end() {
  if (client_ != nullptr && now_ps(*client_) - began_ps_ >= least_sleep_of_other_ps) expire();
}

void begin_wait_beside(const ipc::OrderedThread* own) {
  OutsideChecks& checks = outside_checks;
  ipc::Client* const client = own == nullptr ? nullptr : checking_client();
  checks.waits_beside = client != nullptr;
  if (client == nullptr) return;
  checks.wait_began_ps = now_ps(*client);
  checks.wait_began_ns = has_checked() ? host_now_ns() : 0;
}

void end_wait_beside() {
  OutsideChecks& checks = outside_checks;
  ipc::Client* const client = std::exchange(checks.waits_beside, false) ? checking_client() : nullptr;
  if (client == nullptr) return;
  const std::int64_t ps = now_ps(*client) - checks.wait_began_ps;
  if (ps >= least_sleep_of_other_ps) end_wait_of_other(*client, ps, checks.wait_began_ns);
}

ChildWait::ChildWait(ipc::Client* client) : client_(client) {
  resume_watch_of_calls();
  if (client_ == nullptr) return;
  began_ps_ = now_ps(*client_);
  began_ns_ = host_now_ns();
}

void ChildWait::end(int failure) {
  if (client_ == nullptr || checking_client() != client_) return;
  const int error = errno;
  OutsideChecks& own = outside_checks;
  const std::int64_t ps = now_ps(*client_) - began_ps_;
  if (ps >= least_sleep_of_other_ps) {
    if (has_checked()) {
      OutsideWait(*client_, ps, began_ns_).pass(0);
      own.sleeps_by_other = true;
    } else {
      own.key_before = 0;
      watch_after_wait(*client_, ps);
    }
  }
  if (failure != 0) {
    own.what = OutsideCause::answer;
    own.key =
        mixed(static_cast<std::uint64_t>(OutsideCause::answer), static_cast<std::uint64_t>(failure)) | 1U;
  }
  errno = error;
}

}  // namespace apenet::shim
