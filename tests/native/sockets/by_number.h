/* For programs of sockets, before anything else: their system calls by their numbers, with syscall(), or with
 * -DDIRECT by the instruction, as the runtimes of some languages make them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <errno.h>

static inline long by_number(long number, long a, long b, long c, long d, long e, long f) {
#ifdef DIRECT
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  if (result >= 0) return result;
  errno = (int)-result;
  return -1;
#else
  return syscall(number, a, b, c, d, e, f);
#endif
}

#define WORDS(number, a, b, c, d, e, f, ...) \
  by_number(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL(number, ...) WORDS(number, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

#define socket(...) CALL(SYS_socket, __VA_ARGS__)
#define bind(...) CALL(SYS_bind, __VA_ARGS__)
#define listen(...) CALL(SYS_listen, __VA_ARGS__)
#define accept(...) CALL(SYS_accept, __VA_ARGS__)
#define accept4(...) CALL(SYS_accept4, __VA_ARGS__)
#define connect(...) CALL(SYS_connect, __VA_ARGS__)
#define shutdown(...) CALL(SYS_shutdown, __VA_ARGS__)
#define close(...) CALL(SYS_close, __VA_ARGS__)
#define dup(...) CALL(SYS_dup, __VA_ARGS__)
#define fcntl(...) CALL(SYS_fcntl, __VA_ARGS__)
#define ioctl(...) CALL(SYS_ioctl, __VA_ARGS__)
#define read(...) CALL(SYS_read, __VA_ARGS__)
#define write(...) CALL(SYS_write, __VA_ARGS__)
#define recvfrom(...) CALL(SYS_recvfrom, __VA_ARGS__)
#define sendto(...) CALL(SYS_sendto, __VA_ARGS__)
#define getsockopt(...) CALL(SYS_getsockopt, __VA_ARGS__)
#define setsockopt(...) CALL(SYS_setsockopt, __VA_ARGS__)
#define poll(...) CALL(SYS_poll, __VA_ARGS__)
#define select(...) CALL(SYS_select, __VA_ARGS__)
#define epoll_create1(...) CALL(SYS_epoll_create1, __VA_ARGS__)
#define epoll_ctl(...) CALL(SYS_epoll_ctl, __VA_ARGS__)
#define epoll_wait(...) CALL(SYS_epoll_wait, __VA_ARGS__)
#define recv(...) CALL(SYS_recvfrom, __VA_ARGS__)
#define send(...) CALL(SYS_sendto, __VA_ARGS__)
