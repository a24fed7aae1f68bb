#include "runtime/shim/launcher_threads.hpp"

#include <sys/syscall.h>

#include <ctime>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/single_threaded.hpp"

namespace apenet::shim {

void await_launcher_threads() {
  if (ipc::is_single_threaded()) return;
  constexpr int most_checks = 2000;
  constexpr timespec moment{.tv_sec = 0, .tv_nsec = 100'000};
  timespec* const remaining = nullptr;
  for (int check = 0; check < most_checks && !ipc::are_others_blocked(); ++check)
    ipc::host_call(SYS_nanosleep, &moment, remaining);
}

}  // namespace apenet::shim
