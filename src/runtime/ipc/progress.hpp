// Progress: decides whether a poll tests, waits or only makes progress.
//
// The provider sees polls, and a poll by MPI_Test is the same as one by MPI_Wait. Their effect on virtual
// time differs: a poll that tests gets the true state at the process's own time, a poll that waits advances
// to the next event. Only this class decides, from what the shim and the provider report about the polling
// calls, and from how many polls in a row found nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace apenet::ipc {

// Limits after which a program counts as polling without end: this many empty polls in a
// row, without a clock read between them; or this much virtual time, which includes sleeps; or a tenth of the
// polls in a sixtieth of the time.
struct EmptyPollLimits {
  std::uint32_t polls = 0;
  std::int64_t time_ps = 0;
};

// What is known of the calls of one thread. The counts are heuristics, so threads that are not ordered share
// those of their process and update them concurrently without a lock.
class CallProgress {
 public:
  enum class Poll : std::uint8_t {
    tests,       // gets the true state at this instant
    spins,       // as `tests`, in a row so long that the program must be waiting
    progresses,  // returns at once, because the call may not wait at all
    waits,       // advances to the next event
  };

  // Call when a call of the program begins: earlier polls do not tell whether this call waits.
  void begin_call() {
    add(empty_calls_, 1);
    set(empty_polls_, 0);
  }
  // Call when something was posted or taken.
  void moved() {
    set(empty_polls_, 0);
    set(empty_calls_, 0);
    set(repeated_reads_, 0);
    set(clock_reads_, 0);
  }
  // Call when a poll cannot be a wait, because the caller knows that nothing is in progress.
  void not_waiting() { set(empty_polls_, 0); }

  // Call when a poll has found no visible event. leaves: as Progress::leaves(). Returns what the poll should
  // do.
  Poll on_empty_poll(bool leaves);
  // Returns the cost of a clock read that costs nothing by itself. After most_free reads in a row during
  // which the clock did not move, the program is assumed to wait for a certain time, which it would never
  // reach.
  std::int64_t read_cost_ps(std::int64_t clock_ps, std::uint32_t most_free);
  static constexpr std::uint32_t free_reads = 64;
  static constexpr std::uint32_t free_reads_of_runtime = 16384;
  static constexpr std::uint32_t free_reads_of_leave = 1'000'000;  // while the library waits in the host

  // Count the calls in progress: those that only test (MPI_Test), and those that wait (MPI_Wait).
  void begin_test() { testing_.fetch_add(1, std::memory_order_relaxed); }
  void end_test() { testing_.fetch_sub(1, std::memory_order_relaxed); }
  void begin_wait() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  void end_wait() { waiting_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool is_testing() const { return get(testing_) != 0; }
  [[nodiscard]] bool waits() const { return get(waiting_) != 0; }

  // Call when the program reads the clock between its calls: it may stop at a certain time.
  void read_clock() {
    if (!is_testing()) set(clock_reads_, 1);
  }
  // Call for the first empty polls since something moved. Records the time.
  void begin_empty_polls(std::int64_t clock_ps) {
    empty_since_ps_.store(clock_ps, std::memory_order_relaxed);
  }
  // Likewise when another thread, or a timer, will act, and may end the row: it begins again, and still
  // spins.
  void restart_empty_polls(std::int64_t clock_ps) {
    begin_empty_polls(clock_ps);
    set(empty_calls_, calls_before_testing + 1);
  }
  // Whether the row of empty polls is so long that only an event can end it.
  [[nodiscard]] bool polls_endlessly(const EmptyPollLimits& limits, std::int64_t clock_ps) const;
  void swap(CallProgress& other) noexcept;

 protected:
  // A program may wait in its own loop of calls that only make progress (a lock in a window). After this many
  // such calls in a row without any effect, they count as tests, so that time passes and other ranks get
  // a grant.
  static constexpr std::uint32_t calls_before_testing = 64;
  using Count = std::atomic<std::uint32_t>;
  static std::uint32_t get(const Count& count) { return count.load(std::memory_order_relaxed); }
  static void set(Count& count, std::uint32_t value) { count.store(value, std::memory_order_relaxed); }
  static void add(Count& count, std::uint32_t value) { set(count, get(count) + value); }

 private:
  Count testing_{0};
  Count waiting_{0};
  Count empty_calls_{0};                     // since something moved
  Count empty_polls_{0};                     // in this call, or since something moved
  Count repeated_reads_{0};                  // clock reads in a row while the clock stood still
  std::atomic<std::int64_t> read_at_ps_{0};  // the clock after its last read
  Count clock_reads_{0};                     // 1 if the program has read the clock since something moved
  std::atomic<std::int64_t> empty_since_ps_{0};
};

// Owner: the process; the simulator grants polls and reads calls(). Lies in the mapping, so that the shim and
// the provider share it. While an ordered thread acts, what is known of its own calls stands here.
class Progress : public CallProgress {
 public:
  // As CallProgress::begin_call().
  void begin_call() {
    note_call();
    CallProgress::begin_call();
  }
  void note_call() { add(calls_, 1); }
  void moved() {
    set(granted_, 0);
    CallProgress::moved();
  }
  Poll on_empty_poll() { return CallProgress::on_empty_poll(leaves()); }
  // Call before a poll waits. Returns true if the poll should return without an event instead.
  bool use_grant();

  // Mark MPI_Finalize, in which the library also waits for its process manager, for as long as the host
  // takes. Sleeps, clock reads and polls of this wait take no virtual time.
  void begin_leave() { leaving_.fetch_add(1, std::memory_order_relaxed); }
  void end_leave() { leaving_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool leaves() const { return get(leaving_) != 0; }

  // Call for each empty poll. Returns whether it should tell the simulator of such a row. Not each poll of
  // the row does: a hand-over takes as long as many polls.
  [[nodiscard]] bool reports_polling(const EmptyPollLimits& limits, std::int64_t clock_ps);

  // Called by the simulator when every process waits and the network is empty.
  void grant();
  [[nodiscard]] bool is_granted() const { return get(granted_) != 0; }
  // How often that has been. Unlike is_granted(), it stays when another thread moves.
  [[nodiscard]] std::uint32_t grants() const { return get(grants_); }
  // The number of calls of the program that the shim has seen.
  [[nodiscard]] std::uint32_t calls() const { return get(calls_); }

 private:
  Count leaving_{0};
  Count calls_{0};
  Count granted_{0};        // polls that return without an event instead of waiting
  Count grants_{0};         // calls of grant()
  Count endless_polls_{0};  // sum over all such rows
};

// The simulator cannot be asked to wake a process at the earlier of an event and a time. So a wait with a
// deadline polls at intervals that grow with the time waited: its error stays below a sixteenth. Returns the
// next interval. Requires now < deadline.
[[nodiscard]] constexpr std::int64_t next_step_ps(std::int64_t start_ps, std::int64_t now_ps,
                                                  std::int64_t deadline_ps) {
  constexpr std::int64_t first_step_ps = 1'000'000;
  const std::int64_t step_ps = (now_ps - start_ps) / 16;
  return std::min(step_ps < first_step_ps ? first_step_ps : step_ps, deadline_ps - now_ps);
}

// Marks the calling thread as being in a call that tests.
class Testing {
 public:
  explicit Testing(CallProgress& progress) : progress_(progress) { progress_.begin_test(); }
  ~Testing() { progress_.end_test(); }
  Testing(const Testing&) = delete;
  Testing& operator=(const Testing&) = delete;

 private:
  CallProgress& progress_;
};

// Marks the calling thread as being in a call that waits.
class Waiting {
 public:
  explicit Waiting(CallProgress& progress) : progress_(progress) { progress_.begin_wait(); }
  ~Waiting() { progress_.end_wait(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  CallProgress& progress_;
};

}  // namespace apenet::ipc
