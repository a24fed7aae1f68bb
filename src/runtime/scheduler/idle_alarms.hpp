// IdleAlarms: decides when threads that sleep, check and sleep again count as idle.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ipc/protocol.hpp"

namespace apenet {

// Such housekeeping threads go on when nothing else can happen any more. What a thread will do after its next
// sleep is not known, so this is a guess: the thread has woken very often, over much virtual time, while
// nothing else happened. A sleep that began before that may still change something, and is waited for.
class IdleAlarms {
 public:
  explicit IdleAlarms(std::size_t process_count) : rows_(process_count) {}

  // Call when anything else happens.
  void reset();
  // Call when a process wakes at this time only because one of its threads does.
  void note(std::uint32_t rank, std::int64_t clock_ps);
  // Whether the wakes of this process count as without effect.
  [[nodiscard]] bool are_idle(std::uint32_t rank) const;
  // Whether all these threads of the process sleep again, since the row of wakes has begun.
  [[nodiscard]] bool have_all_woken(std::uint32_t rank, std::int64_t slept_since_ps) const;

 private:
  struct Row {
    std::uint64_t wakes = 0;
    std::int64_t since_ps = 0;
    std::int64_t last_ps = 0;
  };
  std::vector<Row> rows_;
  bool is_empty_ = true;
};

}  // namespace apenet
