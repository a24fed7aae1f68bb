#include "runtime/ipc/program_memory.hpp"

#include <sched.h>
#include <sys/uio.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include "runtime/ipc/host_call.hpp"

namespace apenet::ipc {
namespace {

// The kernel finds out whether the memory is there. Where it may not be asked, the program's is taken to be.
bool transfer(long call, void* own, const void* program, std::size_t bytes) {
  iovec here{.iov_base = own, .iov_len = bytes};
  iovec there{.iov_base = const_cast<void*>(program), .iov_len = bytes};
  const int error = errno;
  const int done = host_call(call, host_call(SYS_getpid, 0, 0), &here, 1, &there, 1);
  const bool is_refused = done < 0 && errno != EFAULT;
  errno = error;
  if (!is_refused) return done == static_cast<int>(bytes);
  if (call == SYS_process_vm_readv) {
    std::memcpy(own, program, bytes);
  } else {
    std::memcpy(there.iov_base, own, bytes);
  }
  return true;
}

// The kernel reads the parameter before it looks for the process, but a null pointer is none. One that is
// aligned lies in one page. Valgrind writes a line for a number that no call has (sigprocmask), and none for
// this.
bool is_byte_readable(std::uintptr_t address) {
  if (address < sizeof(sched_param)) return false;
  constexpr int no_process = INT_MAX;
  host_call(SYS_sched_setparam, no_process, address / sizeof(sched_param) * sizeof(sched_param));
  return errno != EFAULT;
}

}  // namespace

bool copy_in(void* to, const void* from_program, std::size_t bytes) {
  return bytes == 0 || transfer(SYS_process_vm_readv, to, from_program, bytes);
}

bool copy_out(void* to_program, const void* from, std::size_t bytes) {
  return bytes == 0 || transfer(SYS_process_vm_writev, const_cast<void*>(from), to_program, bytes);
}

bool is_readable(const void* program, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(program);
  if (bytes == 0) return true;
  if (begin + bytes < begin) return false;
  const int error = errno;
  const bool is = is_byte_readable(begin) && is_byte_readable(begin + bytes - 1);
  errno = error;
  return is;
}

}  // namespace apenet::ipc
