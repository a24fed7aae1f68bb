// System calls that syscall() answers as the function of the C library of the same job.
#pragma once

#include <sys/syscall.h>

#include <array>

#include "runtime/ipc/old_calls.hpp"

namespace apenet::shim {

using CallArguments = std::array<long, 6>;

// The calls of named_call(); futex has a function of its own.
inline constexpr auto named_calls = std::to_array<unsigned>({
    SYS_read,
    SYS_write,
    ipc::old_call::poll,
    ipc::old_call::access,
    ipc::old_call::pipe,
    ipc::old_call::select,
    SYS_sched_yield,
    ipc::old_call::pause,
    SYS_nanosleep,
    SYS_getitimer,
    ipc::old_call::alarm,
    SYS_setitimer,
    SYS_connect,
    SYS_socketpair,
    SYS_wait4,
    SYS_kill,
    SYS_uname,
    SYS_gettimeofday,
    SYS_getrusage,
    SYS_times,
    SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend,
    SYS_settimeofday,
    SYS_tkill,
    ipc::old_call::time,
    ipc::old_call::epoll_create,
    SYS_semtimedop,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_timer_gettime,
    SYS_timer_getoverrun,
    SYS_timer_delete,
    SYS_clock_settime,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    ipc::old_call::epoll_wait,
    SYS_epoll_ctl,
    SYS_mq_timedsend,
    SYS_mq_timedreceive,
    SYS_waitid,
    SYS_faccessat,
    SYS_pselect6,
    SYS_ppoll,
    SYS_epoll_pwait,
    SYS_timerfd_create,
    ipc::old_call::eventfd,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    SYS_eventfd2,
    SYS_epoll_create1,
    SYS_pipe2,
    SYS_tgkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_epoll_pwait2,
    SYS_pidfd_send_signal,
    SYS_io_uring_setup,
});

// The calls that libapenet-sockets.so answers for its sockets. Reads, writes and waits are named calls.
inline constexpr auto socket_calls = std::to_array<unsigned>({
    SYS_close,      SYS_readv,      SYS_writev,      SYS_ioctl,       SYS_dup,      ipc::old_call::dup2,
    SYS_dup3,       SYS_fcntl,      SYS_sendfile,    SYS_splice,      SYS_socket,   SYS_bind,
    SYS_listen,     SYS_accept,     SYS_accept4,     SYS_getsockname, SYS_sendto,   SYS_recvfrom,
    SYS_sendmsg,    SYS_recvmsg,    SYS_shutdown,    SYS_getpeername, SYS_sendmmsg, SYS_recvmmsg,
    SYS_setsockopt, SYS_getsockopt, SYS_close_range, SYS_getrandom,
});

// Requires a number of named_calls. Returns what syscall() returns, and sets errno as it does.
long named_call(long number, const CallArguments& arguments);

}  // namespace apenet::shim
