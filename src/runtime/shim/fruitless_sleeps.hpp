// FruitlessSleeps: a thread's sleeps between which its rank has done nothing. Such a thread may wait for
// something outside by calls of which the shim does not know what they ask. So between two such sleeps it
// watches all system calls of the thread (direct_calls.hpp) and keeps those that may be a check for something
// outside (watched_calls.hpp).
//
// A watch costs some microseconds, and as much for each call. While it finds nothing, the next one comes
// after twice as much virtual time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/ipc/outside_note.hpp"

namespace apenet::shim {

// A call that may ask for something outside.
struct PossibleCheck {
  ipc::OutsideCause what = ipc::OutsideCause::none;
  std::uint64_t key = 0;     // names what it asks, and the answer so far as it is known
  std::uint32_t number = 0;  // the system call's
};

// One per thread.
class FruitlessSleeps {
 public:
  // Whether such checks are to be noted.
  [[nodiscard]] bool watches() const { return watches_ && now_.count < most_checks; }
  void note(const PossibleCheck& check);
  [[nodiscard]] bool has_asked() const { return now_.count > 0; }
  // A check that the thread has made before this sleep and before the last one; nullptr: none. work: what the
  // rank has done.
  [[nodiscard]] const PossibleCheck* repeated(std::uint64_t work) const;
  // Virtual time of the sleeps before this one in which the thread may have made that check already.
  [[nodiscard]] std::int64_t owed_ps() const { return owed_ps_; }

  void begin_sleep();
  // was_real: it has taken its real time.
  void end_sleep(std::int64_t ps, std::uint64_t work, bool was_real);

 private:
  static constexpr std::size_t most_checks = 8;
  static constexpr std::int64_t least_interval_ps = 10'000'000;
  static constexpr std::int64_t most_interval_ps = 50'000'000'000;

  struct Checks {
    std::array<PossibleCheck, most_checks> all{};
    std::size_t count = 0;
  };

  Checks now_;
  Checks before_;
  std::uint64_t work_before_ = 0;
  std::int64_t owed_ps_ = 0;
  std::int64_t unwatched_ps_ = 0;  // virtual time of sleeps since the last watch
  std::int64_t interval_ps_ = least_interval_ps;
  bool watches_ = false;
};

}  // namespace apenet::shim
