/* Calls each function that the simulation answers by its name, by syscall(), and by an instruction of its
   own: result, error and virtual time must be the same. Prints them: name, result, error, time in
   milliseconds. */
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
#include <stdarg.h>
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

static int raw; /* by its number: 1 by syscall(), 2 by the instruction */

/* As syscall(). */
static long by_number(long number, ...) {
  long words[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) words[i] = va_arg(list, long);
  va_end(list);
#if defined(__x86_64__)
  if (raw == 2) {
    long result = number;
    register long fourth __asm__("r10") = words[3];
    register long fifth __asm__("r8") = words[4];
    register long sixth __asm__("r9") = words[5];
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
  }
#endif
  return syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
/* The function, or the kernel's call of the same name and arguments, or of another name. */
#define BOTH(name, ...) BY(name, name, __VA_ARGS__)
#define BY(call, name, ...) (raw ? by_number(SYS_##call, __VA_ARGS__) : (long)name(__VA_ARGS__))
/* The kernel asks for the size of a signal set behind it. */
#define BOTH_OF_SET(call, name, ...) (raw ? by_number(SYS_##call, __VA_ARGS__, 8L) : (long)name(__VA_ARGS__))

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
  return BOTH(nanosleep, &wait_20, NULL);
}

static long left_ms; /* rest of a sleep that a signal has ended */

static long sleep_is_interrupted(void) {
  struct timespec left = nothing;
  set_alarm();
  const long result = BOTH(nanosleep, &wait_80, &left);
  left_ms = lround((double)left.tv_nsec * 1e-6);
  return result < 0 && errno == EINTR ? left_ms : -2;
}

static long sleeps_until(void) {
  const struct timespec at = date_in_20();
  if (raw) return by_number(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
  errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
  return errno == 0 ? 0 : -1;
}

static long polls(void) {
  return BOTH(poll, NULL, 0, 20);
}

static int own_pipe[2];

static long polls_pipe(void) {
  struct pollfd file = {.fd = own_pipe[0], .events = POLLIN};
  return BOTH(poll, &file, 1, 20);
}

static long ppolls(void) {
  struct pollfd file = {.fd = own_pipe[0], .events = POLLIN};
  return BOTH_OF_SET(ppoll, ppoll, &file, 1, &wait_20, NULL);
}

/* The kernel says what is left. */
static long ppoll_is_interrupted(void) {
  struct timespec limit = wait_80;
  set_alarm();
  const long result = BOTH_OF_SET(ppoll, ppoll, NULL, 0, &limit, NULL);
  if (raw && lround((double)limit.tv_nsec * 1e-6) != 60) return -3;
  return result;
}

static long selects(void) {
  struct timeval limit = {.tv_usec = 20000};
  const long result = BOTH(select, 0, NULL, NULL, NULL, &limit);
  return result == 0 ? limit.tv_usec : result;
}

static long pselects(void) {
  struct timespec limit = wait_20;
  return BY(pselect6, pselect, 0, NULL, NULL, NULL, &limit, NULL);
}

static long epolls(void) {
  struct epoll_event event;
  const int set = (int)BOTH(epoll_create1, 0);
  struct epoll_event wanted = {.events = EPOLLIN};
  BOTH(epoll_ctl, set, EPOLL_CTL_ADD, own_pipe[0], &wanted);
  long result = BOTH(epoll_wait, set, &event, 1, 20);
  result += BOTH_OF_SET(epoll_pwait, epoll_pwait, set, &event, 1, 20, NULL);
  result += BOTH_OF_SET(epoll_pwait2, epoll_pwait2, set, &event, 1, &wait_20, NULL);
  close(set);
  return result;
}

/* There is no function of the name; the other one is that of the C library's waits. */
static long futex_times_out(void) {
  static uint32_t word;
  if (raw) return by_number(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_20, NULL, 0);
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
  return BOTH_OF_SET(rt_sigtimedwait, sigtimedwait, &set, NULL, &wait_20);
}

static long sigtimedwait_takes(void) {
  const sigset_t set = only(SIGUSR2);
  siginfo_t info = {0};
  BOTH(kill, getpid(), SIGUSR2);
  const long taken = BOTH_OF_SET(rt_sigtimedwait, sigtimedwait, &set, &info, &wait_20);
  return taken == SIGUSR2 && info.si_pid == getpid() ? 1 : -2;
}

static long alarms(void) {
  const long before = BOTH(alarm, 100);
  nanosleep(&wait_20, NULL);
  return before + BOTH(alarm, 0);
}

static long itimers(void) {
  const struct itimerval value = {.it_interval = {.tv_usec = 7000}, .it_value = {.tv_usec = 80000}};
  struct itimerval left, stop = {0};
  BOTH(setitimer, ITIMER_REAL, &value, NULL);
  nanosleep(&wait_20, NULL);
  BOTH(getitimer, ITIMER_REAL, &left);
  BOTH(setitimer, ITIMER_REAL, &stop, NULL);
  return lround((double)left.it_value.tv_usec * 1e-3) * 10 + left.it_interval.tv_usec / 1000;
}

static long waits_for_alarm(void) {
  set_alarm();
  return raw ? by_number(SYS_pause) : pause();
}

static long suspends(void) {
  sigset_t none;
  sigemptyset(&none);
  set_alarm();
  return BOTH_OF_SET(rt_sigsuspend, sigsuspend, &none);
}

/* Ends at 20, 30, ... ms; the signal is blocked until 65 ms: one that comes, and four that are counted. */
static long timers(void) {
  const struct itimerspec value = {.it_interval = {.tv_nsec = 10000000}, .it_value = wait_20};
  const struct timespec wait_65 = {.tv_nsec = 65000000};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
  const sigset_t set = only(SIGUSR2);
  struct itimerspec left = {0};
  siginfo_t info = {0};
  timer_t timer = NULL;
  int number = -1; /* the same for the kernel */
  const long made = raw ? by_number(SYS_timer_create, CLOCK_MONOTONIC, &event, &number)
                        : timer_create(CLOCK_MONOTONIC, &event, &timer);
  if (made != 0) return -2;
#define OF_TIMER(name, ...) (raw ? by_number(SYS_##name, number __VA_ARGS__) : name(timer __VA_ARGS__))
  OF_TIMER(timer_settime, , 0, &value, NULL);
  nanosleep(&wait_65, NULL);
  OF_TIMER(timer_gettime, , &left);
  BOTH_OF_SET(rt_sigtimedwait, sigtimedwait, &set, &info, &nothing);
  const long overruns = OF_TIMER(timer_getoverrun, );
  if (OF_TIMER(timer_delete, ) != 0) return -4;
  if (info.si_code != SI_TIMER) return -3;
  return overruns * 10 + lround((double)left.it_value.tv_nsec * 1e-6);
}

static long timer_files(void) {
  const struct itimerspec value = {.it_interval = {.tv_nsec = 10000000}, .it_value = wait_20};
  const struct timespec wait_45 = {.tv_nsec = 45000000};
  struct itimerspec left = {0};
  uint64_t ends = 0;
  const int file = (int)BOTH(timerfd_create, CLOCK_MONOTONIC, 0);
  BOTH(timerfd_settime, file, 0, &value, NULL);
  nanosleep(&wait_45, NULL);
  BOTH(timerfd_gettime, file, &left);
  if (BOTH(read, file, &ends, sizeof ends) != sizeof ends) return -2;
  close(file);
  return (long)ends * 10 + lround((double)left.it_value.tv_nsec * 1e-6);
}

/* The day of the run, from each clock of the calendar. */
static long dates(void) {
  struct timespec now = {0};
  struct timeval day = {0};
  time_t seconds = 0;
  BOTH(clock_gettime, CLOCK_REALTIME, &now);
  BOTH(gettimeofday, &day, NULL);
  if (BOTH(time, &seconds) != seconds) return -2;
  return now.tv_sec / 86400 == day.tv_sec / 86400 && now.tv_sec / 86400 == seconds / 86400
             ? now.tv_sec / 86400
             : -3;
}

static long resolution(void) {
  struct timespec unit = {.tv_nsec = 77};
  const long result = BOTH(clock_getres, CLOCK_MONOTONIC, &unit);
  return result + unit.tv_nsec;
}

static long sets_clock(void) {
  return BOTH(clock_settime, CLOCK_REALTIME, &wait_20);
}

static long sets_day(void) {
  const struct timeval day = {.tv_sec = 1};
  return BOTH(settimeofday, &day, NULL);
}

/* Sleep takes no CPU time. */
static long cpu_times(void) {
  struct tms before, after;
  struct rusage use_before, use_after;
  BOTH(times, &before);
  BOTH(getrusage, RUSAGE_SELF, &use_before);
  nanosleep(&wait_20, NULL);
  BOTH(times, &after);
  BOTH(getrusage, RUSAGE_SELF, &use_after);
  return after.tms_utime - before.tms_utime +
         (use_after.ru_utime.tv_usec - use_before.ru_utime.tv_usec) / 1000;
}

static long node_name(void) {
  struct utsname names;
  char host[256];
  if (BOTH(uname, &names) != 0) return -2;
  gethostname(host, sizeof host);
  return strcmp(names.nodename, host) == 0 ? 0 : -3;
}

static long yields(void) {
  return raw ? by_number(SYS_sched_yield) : sched_yield();
}

/* How many signals have been handled when the call ends. */
static long handled_by(long result) {
  return result == 0 ? handled : -2;
}

static long kills(void) {
  return handled_by(BOTH(kill, getpid(), SIGUSR1));
}

static long tgkills(void) {
  return handled_by(BOTH(tgkill, getpid(), gettid(), SIGUSR1));
}

static long tkills(void) {
  return handled_by(raw ? by_number(SYS_tkill, gettid(), SIGUSR1) : pthread_kill(pthread_self(), SIGUSR1));
}

static const union sigval value_1 = {.sival_int = 1};

static siginfo_t queued(void) {
  siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
  info.si_pid = getpid();
  info.si_uid = getuid();
  return info;
}

static long queues(void) {
  const siginfo_t info = queued();
  return handled_by(raw ? by_number(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &info)
                        : sigqueue(getpid(), SIGUSR1, value_1));
}

static long queues_to_thread(void) {
  const siginfo_t info = queued();
  return handled_by(raw ? by_number(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR1, &info)
                        : pthread_sigqueue(pthread_self(), SIGUSR1, value_1));
}

static long status_of_child(void) {
  int status = 0;
  const pid_t child = (pid_t)(raw ? by_number(SYS_fork) : fork());
  if (child == 0) {
    if (raw) by_number(SYS_exit_group, 3);
    _exit(3);
  }
  const pid_t ended = (pid_t)BOTH(wait4, child, &status, 0, NULL);
  return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

static long info_of_child(void) {
  siginfo_t info = {0};
  const pid_t child = (pid_t)(raw ? by_number(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork());
  if (child == 0) {
    if (raw) by_number(SYS_exit, 4);
    _exit(4);
  }
  if ((raw ? by_number(SYS_waitid, P_PID, child, &info, WEXITED, NULL)
           : waitid(P_PID, (id_t)child, &info, WEXITED)) != 0)
    return -2;
  return info.si_status;
}

static long semaphore_times_out(void) {
  const int set = semget(IPC_PRIVATE, 1, 0600);
  struct sembuf take = {.sem_num = 0, .sem_op = -1};
  const long result = BOTH(semtimedop, set, &take, 1, &wait_20);
  const int error = errno;
  semctl(set, 0, IPC_RMID);
  errno = error;
  return result;
}

static long event_files(void) {
  uint64_t count = 0;
  const int file = (int)BY(eventfd2, eventfd, 5, 0);
  if (read(file, &count, sizeof count) != sizeof count) return -2;
  struct pollfd waits = {.fd = file, .events = POLLIN};
  const int ready = poll(&waits, 1, 20);
  close(file);
  return ready == 0 ? (long)count : -3;
}

static long pipes(void) {
  int ends[2];
  if (BOTH(pipe2, ends, 0) != 0) return -2;
  struct pollfd waits = {.fd = ends[0], .events = POLLIN};
  const int ready = poll(&waits, 1, 20);
  const long written = BOTH(write, ends[1], "abc", 3);
  char text[8];
  const long taken = BOTH(read, ends[0], text, sizeof text);
  close(ends[0]);
  close(ends[1]);
  return ready == 0 && written == 3 ? taken : -3;
}

static long bad_call(void) {
  const struct timespec wrong = {.tv_nsec = 2000000000};
  return BOTH(nanosleep, &wrong, NULL);
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
    char lines[3][128];
    for (raw = 0; raw < 3; ++raw) {
      errno = 0;
      handled = 0;
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
    if (strcmp(lines[0], lines[2]) != 0) printf("%s by itself %s\n", calls[i].name, lines[2]);
  }
  MPI_Finalize();
  return 0;
}
