// Waits for child processes: the time limits and looks of any wait in the host (outside_waits.hpp), and what
// the end of a child says of the program that it was (process_images.hpp).
#include <sys/resource.h>
#include <sys/wait.h>

#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

pid_t waited(pid_t child, int status, int flags) {
  if (child == 0 && (flags & WNOHANG) != 0) note_look(ipc::OutsideCause::child, 1);
  if (child > 0 && (WIFEXITED(status) || WIFSIGNALED(status)))
    note_reaped(child, flags, WIFEXITED(status) && WEXITSTATUS(status) != loader_failed);
  return child;
}

// Calls real(status) of one of the C library's functions.
template <typename Real>
pid_t wait_for_child(int* status, int flags, Real real) {
  int own_status = 0;
  const HostPace pace(pacing_client());
  const pid_t child = real(&own_status);
  if (child > 0 && status != nullptr) *status = own_status;
  return waited(child, own_status, flags);
}

}  // namespace
}  // namespace apenet::shim

using apenet::shim::next;
using apenet::shim::wait_for_child;

APENET_EXPORT pid_t wait(int* status) {
  static const auto real = next<pid_t (*)(int*)>("wait");
  return wait_for_child(status, 0, [&](int* own) { return real(own); });
}

APENET_EXPORT pid_t waitpid(pid_t process, int* status, int flags) {
  static const auto real = next<pid_t (*)(pid_t, int*, int)>("waitpid");
  return wait_for_child(status, flags, [&](int* own) { return real(process, own, flags); });
}

APENET_EXPORT pid_t wait3(int* status, int flags, rusage* use) noexcept {
  static const auto real = next<pid_t (*)(int*, int, rusage*)>("wait3");
  return wait_for_child(status, flags, [&](int* own) { return real(own, flags, use); });
}

APENET_EXPORT pid_t wait4(pid_t process, int* status, int flags, rusage* use) noexcept {
  static const auto real = next<pid_t (*)(pid_t, int*, int, rusage*)>("wait4");
  return wait_for_child(status, flags, [&](int* own) { return real(process, own, flags, use); });
}

APENET_EXPORT int waitid(idtype_t type, id_t process, siginfo_t* info, int flags) {
  static const auto real = next<int (*)(idtype_t, id_t, siginfo_t*, int)>("waitid");
  if (info != nullptr && (flags & WNOHANG) != 0) info->si_pid = 0;  // as it is left if no child has ended
  const apenet::shim::HostPace pace(apenet::shim::pacing_client());
  const int result = real(type, process, info, flags);
  if (result != 0 || info == nullptr) return result;
  if (info->si_pid == 0 && (flags & WNOHANG) != 0)
    apenet::shim::note_look(apenet::ipc::OutsideCause::child, 1);
  const bool has_exited = info->si_code == CLD_EXITED;
  const bool has_ended = has_exited || info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED;
  if (info->si_pid > 0 && has_ended && (flags & WNOWAIT) == 0)
    apenet::shim::note_reaped(info->si_pid, flags,
                              has_exited && info->si_status != apenet::shim::loader_failed);
  return result;
}
