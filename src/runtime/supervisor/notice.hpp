// The notices of a supervisor to the simulator: one record each, on a SOCK_SEQPACKET pair.
#pragma once

#include <cstdint>

namespace apenet::supervisor {

struct Notice {
  enum class What : std::int32_t {
    started,  // the next process of the plan has started; status is 0
    refused,  // it could not be started: status is the errno, and no further process is started
    ended,    // A process of the plan, or an orphaned descendant, has ended; status is that of waitpid().
  };
  What what = What::started;
  std::int32_t process_id = 0;
  std::int32_t status = 0;
  // The program that ended: the name that the kernel gave the process, which is that of its last program, and
  // the page faults of all children that it had waited for.
  char name[16] = {};
  std::uint32_t child_faults = 0;
};

}  // namespace apenet::supervisor
