#include "runtime/shim/launcher_threads.hpp"

#include <sys/syscall.h>

#include <ctime>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/single_threaded.hpp"

namespace apenet::shim {

void await_launcher_threads() {
  if (ipc::is_single_threaded()) return;
  constexpr int most_looks = 2000;
  constexpr timespec moment{.tv_sec = 0, .tv_nsec = 100'000};
  timespec* const remaining = nullptr;
  for (int look = 0; look < most_looks && !ipc::are_others_blocked(); ++look)
    ipc::host_call(SYS_nanosleep, &moment, remaining);
}

}  // namespace apenet::shim
