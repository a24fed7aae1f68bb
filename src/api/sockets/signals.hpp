// Which handlers of signals have run in the calling thread.
#pragma once

#include <cstdint>

namespace apenet::sockets {

struct SignalCounts {
  std::uint64_t handled = 0;
  std::uint64_t interrupting = 0;  // those without SA_RESTART
};
[[nodiscard]] SignalCounts signal_counts();

// While the thread is in a call of this library, which holds the lock of the rank's block: handlers, which
// may call anything and leave by a jump, run after it.
class HandlersWait {
 public:
  HandlersWait();
  ~HandlersWait();
  HandlersWait(const HandlersWait&) = delete;
  HandlersWait& operator=(const HandlersWait&) = delete;
};
// How many wait, and how many of them without SA_RESTART.
[[nodiscard]] SignalCounts waiting_handlers();
void run_waiting_handlers();

}  // namespace apenet::sockets
