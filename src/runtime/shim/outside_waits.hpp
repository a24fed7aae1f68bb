// OutsideWait: sleeps of a rank that waits for something outside the simulation also take real time.
//
// A sleep only advances the clock. A program that checks for something outside, sleeps, checks again, and
// gives up after a time limit would reach the limit before the outside had any time at all. So such a sleep
// takes as long in the host as in virtual time, or until what the rank waits for has changed.
//
// Nobody tells the shim why a program sleeps. The reasons that count are:
//
// - processes that the rank has started are active (shim/family.hpp);
// - the thread has just checked for a process or a connection, and has not found it;
// - the thread has checked the same file, lock or descriptor before this sleep and the one before, and
//   found it unchanged. A single check means nothing: programs check many files that they do not wait for.
//   Nor do two between which the rank has sent or received messages, or computed: it works, and asks whether
//   it should stop. The sleep between the two checks is then made up for;
// - the same for a program that it starts and that fails again;
// - the same for a system call of which the shim does not know what it asks (fruitless_sleeps.hpp);
// - other threads of the rank compute, without a call of the libraries that the simulator knows.
//
// A wait for a child in which virtual time passes is such a sleep, too: a shell sleeps by starting `sleep`.
//
// Some of these reasons are guesses. Real time that a guess takes in a row is limited by the stall timeout,
// unless the processes that the rank has started work.
#pragma once

#include <semaphore.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/outside_note.hpp"

namespace apenet::shim {

using ipc::OutsideCause;
struct PossibleCheck;

[[nodiscard]] std::int64_t host_now_ns();

// Whether checks count now: the rank has virtual time, and its program checks, not a library.
[[nodiscard]] bool counts_checks();
// The calling thread has checked something outside and has not found what it may wait for. key: names the
// thing and its state, not zero; a process id for OutsideCause::process. Cheap, and keeps errno.
void note_check(OutsideCause what, std::uint64_t key);
// What the name of a file leads to.
enum class Presence : std::uint8_t {
  absent,
  there,
  refused,  // there, but not as the program needs it
};
// The same for a file, with the arguments of openat(). state: changes when the file does.
void note_file_check(int folder, const char* path, Presence presence, std::uint64_t state);
// The same for a list of what is in a folder.
void note_folder_check(const char* path);
// The calling thread has found what it may have missed at its last check. When it finds it depends on the
// host, unless the rank has worked between the two checks.
void note_found(OutsideCause what, std::uint64_t key);
void note_file_found(int folder, const char* path);
void note_file_gone(int folder, const char* path);  // likewise: it was there
// The result of opening shared memory, a semaphore or a queue that another process makes. Keeps errno.
void note_object_check(const char* name, bool is_found);
// The calling thread has made a call that may be such a check. Only while they are wanted.
[[nodiscard]] bool wants_possible_checks();
void note_possible_check(const PossibleCheck& check);
// What the thread checks next may have been changed by the rank itself.
void forget_check();
// What the thread has checked last was there, and is no reason to wait.
void drop_check();

// Whether another process may have the semaphore. The mark is the C library's: the word after the value.
[[nodiscard]] inline bool is_shared(const sem_t* semaphore) {
  int mark = 0;
  std::memcpy(&mark, reinterpret_cast<const char*>(semaphore) + sizeof(std::uint64_t), sizeof mark);
  return mark != 0;
}

// One sleep. Make it before the clock advances, and call pass() after: others may act meanwhile, and the time
// that they take in the host counts.
class OutsideWait {
 public:
  OutsideWait(ipc::Client& client, std::int64_t ps);
  // For a sleep that began at this time of the host and is over. Other children do not matter to it.
  OutsideWait(ipc::Client& client, std::int64_t ps, std::int64_t began_ns);
  OutsideWait(const OutsideWait&) = delete;
  OutsideWait& operator=(const OutsideWait&) = delete;
  // left_ps: the rest of a sleep that something has ended early.
  void pass(std::int64_t left_ps);
  // Instead of both, beside active children: the clock and the host's time advance side by side, so that a
  // signal, such as that of a child's end, ends the sleep when it comes. Returns what is left of it, or
  // nothing if it did not sleep.
  std::optional<std::int64_t> sleep_beside_children();

 private:
  struct Reason {
    OutsideCause what = OutsideCause::none;
    bool is_guess = false;
    bool works = false;         // takes time of a processor: the time is not limited
    std::uint64_t subject = 0;  // what the guess is about
    std::uint64_t state = 0;    // changes when what the rank waits for does
    const PossibleCheck* check = nullptr;
  };
  [[nodiscard]] Reason find_reason() const;
  [[nodiscard]] bool holds(Reason& reason) const;
  void take(Reason reason);
  void end_checks(bool was_real);

  ipc::Client& client_;
  std::int64_t ps_;
  std::int64_t began_ns_ = 0;  // in the host; 0: nothing outside needs to be checked
  bool has_children_ = false;
};

// A wait in the order of the threads, which takes no real time. Make it before the wait.
class OrderedWait {
 public:
  // client: nullptr if the process has the host's time.
  explicit OrderedWait(ipc::Client* client);
  // The limit has passed: takes the real time that is owed if the thread waits for something outside.
  void expire();
  // Another thread has ended the wait: likewise, if it has slept meanwhile.
  void end();

 private:
  ipc::Client* client_;
  std::int64_t began_ps_ = 0;
  std::int64_t began_ns_ = 0;  // 0: the thread has checked nothing
};

// The same around a wait without a limit. It has no object on the stack, by whose frames reports of deadlocks
// name functions. own: nullptr if the thread has no order.
void begin_wait_beside(const ipc::OrderedThread* own);
void end_wait_beside();

// A wait for a child. Make it before the wait.
class ChildWait {
 public:
  // client: nullptr if the process has the host's time.
  explicit ChildWait(ipc::Client* client);
  // The child has ended. failure: its exit status, or 0 if a signal has ended it.
  void end(int failure);

 private:
  ipc::Client* client_;
  std::int64_t began_ps_ = 0;
  std::int64_t began_ns_ = 0;
};

}  // namespace apenet::shim
