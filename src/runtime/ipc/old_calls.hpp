// Numbers of system calls that the kernel has on its older processors (x86-64) only. A program uses a newer
// call elsewhere, mostly through the C library's function of the old name: poll() is the call ppoll. There,
// each of these numbers is one that no call has, so lists of calls are the same on every processor.
#pragma once

#include <sys/syscall.h>

namespace apenet::ipc::old_call {

#if defined(__x86_64__)

inline constexpr int access = SYS_access;
inline constexpr int alarm = SYS_alarm;
inline constexpr int dup2 = SYS_dup2;
inline constexpr int epoll_create = SYS_epoll_create;
inline constexpr int epoll_wait = SYS_epoll_wait;
inline constexpr int eventfd = SYS_eventfd;
inline constexpr int fork = SYS_fork;
inline constexpr int open = SYS_open;
inline constexpr int pause = SYS_pause;
inline constexpr int pipe = SYS_pipe;
inline constexpr int poll = SYS_poll;
inline constexpr int select = SYS_select;
inline constexpr int time = SYS_time;
inline constexpr int vfork = SYS_vfork;

#else

enum Absent : int {
  access = 1 << 16,
  alarm,
  dup2,
  epoll_create,
  epoll_wait,
  eventfd,
  fork,
  open,
  pause,
  pipe,
  poll,
  select,
  time,
  vfork,
};

#endif

}  // namespace apenet::ipc::old_call
