/* Calls each function that the simulation answers by its name, and by syscall(): result, error and virtual
   time must be the same. Prints them: name, result, error, time in milliseconds. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <mpi.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int raw; /* by syscall() */
static volatile sig_atomic_t handled;
static const struct timespec wait_20 = {.tv_sec = 0, .tv_nsec = 20000000};
static const struct timespec wait_80 = {.tv_sec = 0, .tv_nsec = 80000000};
static const struct timespec nothing = {0};

static void handle(int number) {
  (void)number;
  ++handled;
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec % 100000) * 1e3 + (double)now.tv_nsec * 1e-6;
}

static struct timespec date_in_20(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  at.tv_nsec += 20000000;
  if (at.tv_nsec >= 1000000000) at = (struct timespec){at.tv_sec + 1, at.tv_nsec - 1000000000};
  return at;
}

/* The timer of the process ends in 20 ms. */
static void set_alarm(void) {
  const struct itimerval value = {.it_value = {.tv_usec = 20000}};
  setitimer(ITIMER_REAL, &value, NULL);
}

static long sleeps(void) {
  return raw ? syscall(SYS_nanosleep, &wait_20, NULL) : nanosleep(&wait_20, NULL);
}

static long left_ms; /* of a sleep that a signal has ended */

static long sleep_is_interrupted(void) {
  struct timespec left = nothing;
  set_alarm();
  const long result = raw ? syscall(SYS_nanosleep, &wait_80, &left) : nanosleep(&wait_80, &left);
  left_ms = lround((double)left.tv_nsec * 1e-6);
  return result < 0 && errno == EINTR ? left_ms : -2;
}

static long sleeps_until(void) {
  const struct timespec at = date_in_20();
  if (raw) return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
  errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
  return errno == 0 ? 0 : -1;
}

static long polls(void) {
  return raw ? syscall(SYS_poll, NULL, 0, 20) : poll(NULL, 0, 20);
}

static int own_pipe[2];

static long polls_pipe(void) {
  struct pollfd file = {.fd = own_pipe[0], .events = POLLIN};
  return raw ? syscall(SYS_poll, &file, 1, 20) : poll(&file, 1, 20);
}

static long ppolls(void) {
  struct pollfd file = {.fd = own_pipe[0], .events = POLLIN};
  return raw ? syscall(SYS_ppoll, &file, 1, &wait_20, NULL, 8L) : ppoll(&file, 1, &wait_20, NULL);
}

/* The kernel says what is left. */
static long ppoll_is_interrupted(void) {
  struct timespec limit = wait_80;
  set_alarm();
  const long result = raw ? syscall(SYS_ppoll, NULL, 0, &limit, NULL, 8L) : ppoll(NULL, 0, &limit, NULL);
  if (raw && lround((double)limit.tv_nsec * 1e-6) != 60) return -3;
  return result;
}

static long selects(void) {
  struct timeval limit = {.tv_usec = 20000};
  const long result =
      raw ? syscall(SYS_select, 0, NULL, NULL, NULL, &limit) : select(0, NULL, NULL, NULL, &limit);
  return result == 0 ? limit.tv_usec : result;
}

static long pselects(void) {
  struct timespec limit = wait_20;
  return raw ? syscall(SYS_pselect6, 0, NULL, NULL, NULL, &limit, NULL)
             : pselect(0, NULL, NULL, NULL, &limit, NULL);
}

static long epolls(void) {
  struct epoll_event event;
  const int set = (int)(raw ? syscall(SYS_epoll_create1, 0) : epoll_create1(0));
  struct epoll_event wanted = {.events = EPOLLIN};
  if (raw) {
    syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, own_pipe[0], &wanted);
  } else {
    epoll_ctl(set, EPOLL_CTL_ADD, own_pipe[0], &wanted);
  }
  long result = raw ? syscall(SYS_epoll_wait, set, &event, 1, 20) : epoll_wait(set, &event, 1, 20);
  result +=
      raw ? syscall(SYS_epoll_pwait, set, &event, 1, 20, NULL, 8L) : epoll_pwait(set, &event, 1, 20, NULL);
  result += raw ? syscall(SYS_epoll_pwait2, set, &event, 1, &wait_20, NULL, 8L)
                : epoll_pwait2(set, &event, 1, &wait_20, NULL);
  close(set);
  return result;
}

/* There is no function of the name; the other one is that of the C library's waits. */
static long futex_times_out(void) {
  static uint32_t word;
  if (raw) return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_20, NULL, 0);
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const struct timespec at = date_in_20();
  pthread_mutex_lock(&lock);
  errno = pthread_cond_clockwait(&condition, &lock, CLOCK_MONOTONIC, &at);
  pthread_mutex_unlock(&lock);
  return errno == 0 ? 0 : -1;
}

static sigset_t only(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  return set;
}

static long sigtimedwait_ends(void) {
  const sigset_t set = only(SIGUSR2);
  return raw ? syscall(SYS_rt_sigtimedwait, &set, NULL, &wait_20, 8L) : sigtimedwait(&set, NULL, &wait_20);
}

static long sigtimedwait_takes(void) {
  const sigset_t set = only(SIGUSR2);
  siginfo_t info = {0};
  if (raw) {
    syscall(SYS_kill, getpid(), SIGUSR2);
  } else {
    kill(getpid(), SIGUSR2);
  }
  const long taken =
      raw ? syscall(SYS_rt_sigtimedwait, &set, &info, &wait_20, 8L) : sigtimedwait(&set, &info, &wait_20);
  return taken == SIGUSR2 && info.si_pid == getpid() ? 1 : -2;
}

static long alarms(void) {
  const long before = raw ? syscall(SYS_alarm, 100) : alarm(100);
  nanosleep(&wait_20, NULL);
  return before + (raw ? syscall(SYS_alarm, 0) : alarm(0));
}

static long itimers(void) {
  const struct itimerval value = {.it_interval = {.tv_usec = 7000}, .it_value = {.tv_usec = 80000}};
  struct itimerval left, stop = {0};
  if (raw) {
    syscall(SYS_setitimer, ITIMER_REAL, &value, NULL);
    nanosleep(&wait_20, NULL);
    syscall(SYS_getitimer, ITIMER_REAL, &left);
    syscall(SYS_setitimer, ITIMER_REAL, &stop, NULL);
  } else {
    setitimer(ITIMER_REAL, &value, NULL);
    nanosleep(&wait_20, NULL);
    getitimer(ITIMER_REAL, &left);
    setitimer(ITIMER_REAL, &stop, NULL);
  }
  return lround((double)left.it_value.tv_usec * 1e-3) * 10 + left.it_interval.tv_usec / 1000;
}

static long waits_for_alarm(void) {
  set_alarm();
  return raw ? syscall(SYS_pause) : pause();
}

static long suspends(void) {
  sigset_t none;
  sigemptyset(&none);
  set_alarm();
  return raw ? syscall(SYS_rt_sigsuspend, &none, 8L) : sigsuspend(&none);
}

/* Ends at 20, 30, ... ms; the signal is blocked until 65 ms: one that comes, and four that are counted. */
static long timers(void) {
  const struct itimerspec value = {.it_interval = {.tv_nsec = 10000000}, .it_value = wait_20};
  const struct timespec wait_65 = {.tv_nsec = 65000000};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
  const sigset_t set = only(SIGUSR2);
  struct itimerspec left = {0};
  siginfo_t info = {0};
  long overruns = -1;
  if (raw) {
    int timer = -1;
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0) return -2;
    syscall(SYS_timer_settime, timer, 0, &value, NULL);
    nanosleep(&wait_65, NULL);
    syscall(SYS_timer_gettime, timer, &left);
    syscall(SYS_rt_sigtimedwait, &set, &info, &nothing, 8L);
    overruns = syscall(SYS_timer_getoverrun, timer);
    if (syscall(SYS_timer_delete, timer) != 0) return -4;
  } else {
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return -2;
    timer_settime(timer, 0, &value, NULL);
    nanosleep(&wait_65, NULL);
    timer_gettime(timer, &left);
    sigtimedwait(&set, &info, &nothing);
    overruns = timer_getoverrun(timer);
    if (timer_delete(timer) != 0) return -4;
  }
  if (info.si_code != SI_TIMER) return -3;
  return overruns * 10 + lround((double)left.it_value.tv_nsec * 1e-6);
}

static long timer_files(void) {
  const struct itimerspec value = {.it_interval = {.tv_nsec = 10000000}, .it_value = wait_20};
  const struct timespec wait_45 = {.tv_nsec = 45000000};
  struct itimerspec left = {0};
  uint64_t ends = 0;
  const int file =
      (int)(raw ? syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0) : timerfd_create(CLOCK_MONOTONIC, 0));
  if (raw) {
    syscall(SYS_timerfd_settime, file, 0, &value, NULL);
    nanosleep(&wait_45, NULL);
    syscall(SYS_timerfd_gettime, file, &left);
    if (syscall(SYS_read, file, &ends, sizeof ends) != sizeof ends) return -2;
  } else {
    timerfd_settime(file, 0, &value, NULL);
    nanosleep(&wait_45, NULL);
    timerfd_gettime(file, &left);
    if (read(file, &ends, sizeof ends) != sizeof ends) return -2;
  }
  close(file);
  return (long)ends * 10 + lround((double)left.it_value.tv_nsec * 1e-6);
}

/* The day of the run, from each clock of the calendar. */
static long dates(void) {
  struct timespec now = {0};
  struct timeval day = {0};
  time_t seconds = 0;
  if (raw) {
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    syscall(SYS_gettimeofday, &day, NULL);
    if (syscall(SYS_time, &seconds) != seconds) return -2;
  } else {
    clock_gettime(CLOCK_REALTIME, &now);
    gettimeofday(&day, NULL);
    if (time(&seconds) != seconds) return -2;
  }
  return now.tv_sec / 86400 == day.tv_sec / 86400 && now.tv_sec / 86400 == seconds / 86400
             ? now.tv_sec / 86400
             : -3;
}

static long resolution(void) {
  struct timespec unit = {.tv_nsec = 77};
  const long result =
      raw ? syscall(SYS_clock_getres, CLOCK_MONOTONIC, &unit) : clock_getres(CLOCK_MONOTONIC, &unit);
  return result + unit.tv_nsec;
}

static long sets_clock(void) {
  return raw ? syscall(SYS_clock_settime, CLOCK_REALTIME, &wait_20) : clock_settime(CLOCK_REALTIME, &wait_20);
}

static long sets_day(void) {
  const struct timeval day = {.tv_sec = 1};
  return raw ? syscall(SYS_settimeofday, &day, NULL) : settimeofday(&day, NULL);
}

/* Sleep takes no CPU time. */
static long cpu_times(void) {
  struct tms before, after;
  struct rusage use_before, use_after;
  if (raw) {
    syscall(SYS_times, &before);
    syscall(SYS_getrusage, RUSAGE_SELF, &use_before);
  } else {
    times(&before);
    getrusage(RUSAGE_SELF, &use_before);
  }
  nanosleep(&wait_20, NULL);
  if (raw) {
    syscall(SYS_times, &after);
    syscall(SYS_getrusage, RUSAGE_SELF, &use_after);
  } else {
    times(&after);
    getrusage(RUSAGE_SELF, &use_after);
  }
  return after.tms_utime - before.tms_utime +
         (use_after.ru_utime.tv_usec - use_before.ru_utime.tv_usec) / 1000;
}

static long node_name(void) {
  struct utsname names;
  char host[256];
  if ((raw ? syscall(SYS_uname, &names) : uname(&names)) != 0) return -2;
  gethostname(host, sizeof host);
  return strcmp(names.nodename, host) == 0 ? 0 : -3;
}

static long yields(void) {
  return raw ? syscall(SYS_sched_yield) : sched_yield();
}

static long kills(void) {
  handled = 0;
  const long result = raw ? syscall(SYS_kill, getpid(), SIGUSR1) : kill(getpid(), SIGUSR1);
  return result == 0 ? handled : -2;
}

static long tgkills(void) {
  handled = 0;
  const long result =
      raw ? syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) : tgkill(getpid(), gettid(), SIGUSR1);
  return result == 0 ? handled : -2;
}

static long tkills(void) {
  handled = 0;
  const long result = raw ? syscall(SYS_tkill, gettid(), SIGUSR1) : pthread_kill(pthread_self(), SIGUSR1);
  return result == 0 ? handled : -2;
}

static long queues(void) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = SIGUSR1;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  handled = 0;
  const long result = raw ? syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &info)
                          : sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 1});
  return result == 0 ? handled : -2;
}

static long queues_to_thread(void) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = SIGUSR1;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  handled = 0;
  const long result = raw ? syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR1, &info)
                          : pthread_sigqueue(pthread_self(), SIGUSR1, (union sigval){.sival_int = 1});
  return result == 0 ? handled : -2;
}

static long status_of_child(void) {
  int status = 0;
  const pid_t child = (pid_t)(raw ? syscall(SYS_fork) : fork());
  if (child == 0) {
    if (raw) syscall(SYS_exit_group, 3);
    _exit(3);
  }
  const pid_t ended =
      (pid_t)(raw ? syscall(SYS_wait4, child, &status, 0, NULL) : wait4(child, &status, 0, NULL));
  return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

static long info_of_child(void) {
  siginfo_t info = {0};
  const pid_t child = (pid_t)(raw ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork());
  if (child == 0) {
    if (raw) syscall(SYS_exit, 4);
    _exit(4);
  }
  if ((raw ? syscall(SYS_waitid, P_PID, child, &info, WEXITED, NULL)
           : waitid(P_PID, (id_t)child, &info, WEXITED)) != 0)
    return -2;
  return info.si_status;
}

static long semaphore_times_out(void) {
  const int set = semget(IPC_PRIVATE, 1, 0600);
  struct sembuf take = {.sem_num = 0, .sem_op = -1};
  const long result =
      raw ? syscall(SYS_semtimedop, set, &take, 1, &wait_20) : semtimedop(set, &take, 1, &wait_20);
  const int error = errno;
  semctl(set, 0, IPC_RMID);
  errno = error;
  return result;
}

static long event_files(void) {
  uint64_t count = 0;
  const int file = (int)(raw ? syscall(SYS_eventfd2, 5, 0) : eventfd(5, 0));
  if (read(file, &count, sizeof count) != sizeof count) return -2;
  struct pollfd waits = {.fd = file, .events = POLLIN};
  const int ready = poll(&waits, 1, 20);
  close(file);
  return ready == 0 ? (long)count : -3;
}

static long pipes(void) {
  int ends[2];
  if ((raw ? syscall(SYS_pipe2, ends, 0) : pipe2(ends, 0)) != 0) return -2;
  struct pollfd waits = {.fd = ends[0], .events = POLLIN};
  const int ready = poll(&waits, 1, 20);
  const long written = raw ? syscall(SYS_write, ends[1], "abc", 3) : write(ends[1], "abc", 3);
  char text[8];
  const long taken = raw ? syscall(SYS_read, ends[0], text, sizeof text) : read(ends[0], text, sizeof text);
  close(ends[0]);
  close(ends[1]);
  return ready == 0 && written == 3 ? taken : -3;
}

static long bad_call(void) {
  const struct timespec wrong = {.tv_nsec = 2000000000};
  return raw ? syscall(SYS_nanosleep, &wrong, NULL) : nanosleep(&wrong, NULL);
}

#define CALL(function) \
  { #function, function }
static const struct {
  const char* name;
  long (*function)(void);
} calls[] = {
    CALL(sleeps),
    CALL(sleep_is_interrupted),
    CALL(sleeps_until),
    CALL(polls),
    CALL(polls_pipe),
    CALL(ppolls),
    CALL(ppoll_is_interrupted),
    CALL(selects),
    CALL(pselects),
    CALL(epolls),
    CALL(futex_times_out),
    CALL(sigtimedwait_ends),
    CALL(sigtimedwait_takes),
    CALL(alarms),
    CALL(itimers),
    CALL(waits_for_alarm),
    CALL(suspends),
    CALL(timers),
    CALL(timer_files),
    CALL(dates),
    CALL(resolution),
    CALL(sets_clock),
    CALL(sets_day),
    CALL(cpu_times),
    CALL(node_name),
    CALL(yields),
    CALL(kills),
    CALL(tgkills),
    CALL(tkills),
    CALL(queues),
    CALL(queues_to_thread),
    CALL(status_of_child),
    CALL(info_of_child),
    CALL(semaphore_times_out),
    CALL(event_files),
    CALL(pipes),
    CALL(bad_call),
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const sigset_t blocked = only(SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  const struct sigaction action = {.sa_handler = handle};
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  if (pipe(own_pipe) != 0) return 2;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
    char lines[2][128];
    for (raw = 0; raw < 2; ++raw) {
      errno = 0;
      const double began_ms = now_ms();
      const long result = calls[i].function();
      const int error = result == -1 ? errno : 0;
      const double took_ms = now_ms() - began_ms;
      snprintf(lines[raw], sizeof lines[raw], "%ld %s %.0f", result,
               error == 0 ? "0" : strerrorname_np(error), took_ms);
    }
    if (rank != 0) continue;
    printf("%s %s\n", calls[i].name, lines[0]);
    if (strcmp(lines[0], lines[1]) != 0) printf("%s by syscall %s\n", calls[i].name, lines[1]);
  }
  MPI_Finalize();
  return 0;
}
