// Calls that name memory which is not there. Prints those that do not fail with EFAULT, as they do on Linux.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mpi.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sigjmp_buf crashed;

static void on_crash(int number) {
  (void)number;
  siglongjmp(crashed, 1);
}

static int calls = 0;

#define CALL(name, call)                                                                           \
  do {                                                                                             \
    errno = 0;                                                                                     \
    ++calls;                                                                                       \
    if (sigsetjmp(crashed, 1) != 0) {                                                              \
      printf("%s crashes\n", name);                                                                \
    } else {                                                                                       \
      const long result = (long)(call);                                                            \
      if (result != -1 || errno != EFAULT) printf("%s: %ld, %s\n", name, result, strerror(errno)); \
    }                                                                                              \
  } while (0)

// For a call that returns its error.
#define ERROR_OF(call) ((errno = (call)) == 0 ? 0 : -1)

static pid_t ended_child(void) {
  const pid_t child = fork();
  if (child == 0) _exit(3);
  siginfo_t info;
  waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
  return child;
}

int main(int argc, char** argv) {
  // `host`: the process never begins virtual time.
  const int has_mpi = argc < 2 || strcmp(argv[1], "host") != 0;
  if (has_mpi) MPI_Init(&argc, &argv);
  struct sigaction handling = {.sa_handler = on_crash};
  sigaction(SIGSEGV, &handling, NULL);
  sigaction(SIGBUS, &handling, NULL);
  // Two pages, of which only the first is there.
  const long page = sysconf(_SC_PAGESIZE);
  char* const pages =
      mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages + page, (size_t)page);
  void* const bad = pages + page;
  int pipes[2];
  int sockets[2];
  if (pipe(pipes) != 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) != 0) return 1;

  CALL("write", write(pipes[1], bad, 4));
  CALL("writev", writev(pipes[1], bad, 2));
  struct iovec* const cut = (struct iovec*)bad - 1;
  *cut = (struct iovec){.iov_base = pages, .iov_len = 1};
  CALL("writev at the end", writev(pipes[1], cut, 2));
  CALL("readv", readv(pipes[0], bad, 1));
  CALL("sendmsg", sendmsg(sockets[0], bad, MSG_DONTWAIT));
  CALL("sendmmsg", sendmmsg(sockets[0], bad, 3, MSG_DONTWAIT));
  CALL("recvmsg", recvmsg(sockets[0], bad, MSG_DONTWAIT));
  CALL("connect", connect(sockets[0], bad, 16));

  struct pollfd one = {.fd = pipes[0], .events = POLLIN};
  const struct timespec moment = {.tv_sec = 0, .tv_nsec = 1000};
  struct timeval short_time = {.tv_sec = 0, .tv_usec = 1};
  struct epoll_event event;
  const int set = epoll_create1(0);
  CALL("poll", poll(bad, 1, 10));
  void* volatile none = NULL;  // the compiler does not follow it
  CALL("poll of nothing", poll(none, 1, 10));
  CALL("ppoll", ppoll(bad, 1, &moment, NULL));
  CALL("ppoll mask", ppoll(&one, 1, &moment, bad));
  CALL("select", select(4, bad, NULL, NULL, &short_time));
  CALL("pselect", pselect(4, NULL, bad, NULL, &moment, NULL));
  CALL("epoll_pwait mask", epoll_pwait(set, &event, 1, 1, bad));
  CALL("syscall select", syscall(SYS_select, 0, NULL, NULL, NULL, bad));
  CALL("syscall pselect6", syscall(SYS_pselect6, 0, NULL, NULL, NULL, bad, NULL));
  CALL("syscall pselect6 mask", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &moment, bad));
  CALL("syscall ppoll", syscall(SYS_ppoll, &one, 1, bad, NULL, 8));
  CALL("syscall epoll_pwait", syscall(SYS_epoll_pwait, set, &event, 1, 1, bad, 8));

  CALL("nanosleep", nanosleep(bad, NULL));
  CALL("clock_nanosleep", ERROR_OF(clock_nanosleep(CLOCK_MONOTONIC, 0, bad, NULL)));
  CALL("syscall clock_gettime", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, bad));
  CALL("syscall clock_getres", syscall(SYS_clock_getres, CLOCK_MONOTONIC, bad));
  CALL("syscall gettimeofday", syscall(SYS_gettimeofday, bad, NULL));
  CALL("syscall time", syscall(SYS_time, bad));
  CALL("syscall times", syscall(SYS_times, bad));
  CALL("getrusage", getrusage(RUSAGE_SELF, bad));
  CALL("setrlimit", setrlimit(RLIMIT_STACK, bad));

  timer_t timer;
  const int file = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec off = {{0, 0}, {0, 0}};
  if (timer_create(CLOCK_MONOTONIC, NULL, &timer) != 0) return 1;
  CALL("setitimer", setitimer(ITIMER_REAL, bad, NULL));
  CALL("getitimer", getitimer(ITIMER_REAL, bad));
  CALL("timer_settime", timer_settime(timer, 0, bad, NULL));
  CALL("timer_settime before", timer_settime(timer, 0, &off, bad));
  CALL("timer_gettime", timer_gettime(timer, bad));
  CALL("timerfd_settime", timerfd_settime(file, 0, bad, NULL));
  CALL("timerfd_settime date", timerfd_settime(file, TFD_TIMER_ABSTIME, bad, NULL));
  CALL("timerfd_gettime", timerfd_gettime(file, bad));
  CALL("syscall timer_create", syscall(SYS_timer_create, CLOCK_MONOTONIC, bad, &timer));
  CALL("syscall timer_create id", syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, bad));

  sigset_t usual;
  sigemptyset(&usual);
  CALL("sigsuspend", sigsuspend(bad));
  CALL("sigtimedwait", sigtimedwait(bad, NULL, &moment));
  CALL("sigtimedwait limit", sigtimedwait(&usual, NULL, bad));
  CALL("syscall rt_sigsuspend", syscall(SYS_rt_sigsuspend, bad, 8));
  CALL("syscall rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, getpid(), SIGCONT, bad));

  int word = 0;
  CALL("syscall futex", syscall(SYS_futex, bad, FUTEX_WAIT, 0, &moment));
  CALL("syscall futex limit", syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, bad));
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  CALL("sched_setaffinity", sched_setaffinity(0, sizeof cores, bad));
  sched_setaffinity(0, sizeof cores, &cores);
  CALL("sched_getaffinity", sched_getaffinity(0, sizeof cores, bad));
  CALL("fcntl lock", fcntl(pipes[0], F_SETLK, bad));
  CALL("access", access(bad, R_OK));
  struct stat status;
  CALL("stat", stat(bad, &status));
  CALL("stat result", stat("/", bad));

  pid_t child = ended_child();
  CALL("waitpid", waitpid(child, bad, 0));
  child = ended_child();
  CALL("waitid", waitid(P_PID, (id_t)child, bad, WEXITED));
  char* const arguments[] = {"true", NULL};
  char* const texts[] = {bad, NULL};
  CALL("execve path", execve(bad, arguments, environ));
  CALL("execve arguments", execve("/bin/true", bad, environ));
  CALL("execve argument", execve("/bin/true", texts, environ));
  CALL("execve environment", execve("/bin/true", arguments, bad));
  CALL("execve variable", execve("/bin/true", arguments, texts));
  CALL("posix_spawn", ERROR_OF(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, texts)));
  printf("%d calls\n", calls);
  if (has_mpi) MPI_Finalize();
  return 0;
}
