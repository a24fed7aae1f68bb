// Which handlers of signals have run in the calling thread.
#pragma once

#include <cstdint>

namespace apenet::sockets {

struct SignalCounts {
  std::uint64_t handled = 0;
  std::uint64_t interrupting = 0;  // those without SA_RESTART
};
[[nodiscard]] SignalCounts signal_counts();

}  // namespace apenet::sockets
