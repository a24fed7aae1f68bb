// Progress: does this poll look, wait, or only kick?
//
// The provider sees polls, and a poll of MPI_Test is the same as one of MPI_Wait. What it means for virtual
// time differs: one that looks is answered truthfully up to the process's own time, one that waits goes to
// the next event. This class alone decides, from what the shim and the provider tell it about the calls that
// poll, and from how long polls have brought nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace apenet::ipc {

// After so many looks in a row that found nothing, without a read of the clock between them, a program looks
// for ever; or after so much virtual time, in which it also sleeps.
struct VainLimits {
  std::uint32_t looks = 0;
  std::int64_t time_ps = 0;
};

// Owner: the process; the simulator grants polls and reads calls(). Lies in the mapping, so that the shim and
// the provider share it. Counts are heuristics: threads that count at once agree on them without a lock.
class Progress {
 public:
  enum class Poll : std::uint8_t {
    looks,          // is told the truth about this instant
    looks_in_vain,  // the same, in a row so long that it must be a wait made of looks
    kicks,          // returns at once: the call may not wait at all
    waits,          // goes to the next event
  };

  // A call of the program's begins: polls of the ones before say nothing about whether it waits.
  void begin_call() {
    add(calls_, 1);
    add(calls_in_vain_, 1);
    set(empty_polls_, 0);
  }
  // Something was posted or taken.
  void moved() {
    set(granted_, 0);
    set(empty_polls_, 0);
    set(calls_in_vain_, 0);
    set(reads_in_vain_, 0);
    set(clock_reads_, 0);
  }
  // What polls here cannot be: a wait for what the caller knows not to be under way.
  void not_waiting() { set(empty_polls_, 0); }

  // A poll has found nothing that it can see.
  Poll poll_in_vain();
  // Of one that waits, before it does. True: it returns with nothing.
  bool use_grant();
  // What a read of the clock costs on a machine whose reads cost nothing: where a program reads until a time
  // has come, it would never get there.
  std::int64_t read_cost_ps(std::int64_t clock_ps);

  // Calls under way, of all threads: those that only look (MPI_Test), and those that wait (MPI_Wait).
  void begin_look() { looking_.fetch_add(1, std::memory_order_relaxed); }
  void end_look() { looking_.fetch_sub(1, std::memory_order_relaxed); }
  void begin_wait() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  void end_wait() { waiting_.fetch_sub(1, std::memory_order_relaxed); }
  // MPI_Finalize: the library also waits for its process manager, for as long as the host takes. Sleeps,
  // reads of the clock and polls that serve this wait take no virtual time.
  void begin_leave() { leaving_.fetch_add(1, std::memory_order_relaxed); }
  void end_leave() { leaving_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool leaves() const { return get(leaving_) != 0; }
  [[nodiscard]] bool looks() const { return get(looking_) != 0; }
  [[nodiscard]] bool waits() const { return get(waiting_) != 0; }

  // The program has read the clock, between its calls: it may be about to stop at a time.
  void read_clock() {
    if (!looks()) set(clock_reads_, 1);
  }
  // A look has found nothing, the first ones since something moved: at this time.
  void look_begins(std::int64_t clock_ps) { vain_since_ps_.store(clock_ps, std::memory_order_relaxed); }
  // Whether the row of looks is so long that nothing will end it but an event.
  [[nodiscard]] bool looks_for_ever(const VainLimits& limits, std::int64_t clock_ps) const;

  // The simulator's: every process waits and the network is empty.
  void grant();
  // Calls that the program has made, as far as the shim sees them.
  [[nodiscard]] std::uint32_t calls() const { return get(calls_); }

 private:
  using Count = std::atomic<std::uint32_t>;
  static std::uint32_t get(const Count& count) { return count.load(std::memory_order_relaxed); }
  static void set(Count& count, std::uint32_t value) { count.store(value, std::memory_order_relaxed); }
  static void add(Count& count, std::uint32_t value) { set(count, get(count) + value); }

  Count looking_{0};
  Count waiting_{0};
  Count leaving_{0};
  Count calls_{0};
  Count calls_in_vain_{0};                   // since something moved
  Count empty_polls_{0};                     // of this call, or since something moved
  Count granted_{0};                         // polls that return with nothing instead of waiting
  Count reads_in_vain_{0};                   // of the clock, in a row, while it stood still and nothing moved
  std::atomic<std::int64_t> read_at_ps_{0};  // the clock after it was last read
  Count clock_reads_{0};                     // 1: the program has read it since something moved
  std::atomic<std::int64_t> vain_since_ps_{0};
};

// While it lives, the calling thread is in a call that looks, or waits.
class Looking {
 public:
  explicit Looking(Progress& progress) : progress_(progress) { progress_.begin_look(); }
  ~Looking() { progress_.end_look(); }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

 private:
  Progress& progress_;
};

}  // namespace apenet::ipc
