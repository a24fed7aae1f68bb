// What a warden tells the simulator, a record each on a SOCK_SEQPACKET pair.
#pragma once

#include <cstdint>

namespace apenet::warden {

struct Notice {
  enum class What : std::int32_t {
    started,  // the next process of the plan runs; status is 0
    refused,  // it cannot be started: status is the errno, and nothing more is started
    ended,    // a process has ended, of the plan or a descendant whose parent had ended: status as waitpid()
              // has it
  };
  What what = What::started;
  std::int32_t process_id = 0;
  std::int32_t status = 0;
};

}  // namespace apenet::warden
