// Every clock of the C library shows virtual time; CPU clocks exclude sleep; invalid arguments cause errors.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { date_s = 1122249600, hour_s = 3600 };

struct timeb {
  time_t time;
  unsigned short millitm;
  short timezone;
  short dstflag;
};
int ftime(struct timeb*);
int __nanosleep(const struct timespec*, struct timespec*);
int __poll_chk(struct pollfd*, nfds_t, int, size_t);

static double seconds(clockid_t clock) {
  struct timespec now;
  CHECK(clock_gettime(clock, &now) == 0);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int is_today(time_t time) {
  return time >= date_s && time < date_s + 1000 * hour_s;
}

static void check_dates(void) {
  struct timespec spec = {0};
  struct timeval value = {0};
  struct timezone zone = {9, 9};
  struct timeb old = {0};
  CHECK(is_today(time(NULL)));
  CHECK(timespec_get(&spec, TIME_UTC) == TIME_UTC && is_today(spec.tv_sec));
  CHECK(timespec_get(&spec, 77) == 0);
  CHECK(gettimeofday(&value, &zone) == 0 && is_today(value.tv_sec) && zone.tz_minuteswest == 0);
  CHECK(ftime(&old) == 0 && is_today(old.time));
  CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, &spec) == 0 && is_today(spec.tv_sec));
  CHECK(is_today(syscall(SYS_time, NULL)));
  CHECK(syscall(SYS_gettimeofday, &value, NULL) == 0 && is_today(value.tv_sec));
  CHECK(clock_getres(CLOCK_MONOTONIC_COARSE, &spec) == 0 && spec.tv_sec == 0 && spec.tv_nsec == 1);
  CHECK(clock_settime(CLOCK_REALTIME, &spec) == -1 && errno == EPERM);
}

static void check_wrong_arguments(void) {
  struct timespec spec = {0, 1000000000};
  struct timespec* volatile nowhere = NULL;
  CHECK(clock_gettime(4711, &spec) == -1 && errno == EINVAL);
  CHECK(clock_gettime(CLOCK_REALTIME, nowhere) == -1 && errno == EFAULT);
  CHECK(clock_getres(4711, &spec) == -1 && errno == EINVAL);
  CHECK(nanosleep(&spec, NULL) == -1 && errno == EINVAL);
  CHECK(nanosleep(nowhere, NULL) == -1 && errno == EFAULT);
  CHECK(clock_nanosleep(4711, 0, &spec, NULL) == EINVAL);
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &spec, NULL) == EINVAL);
  CHECK(syscall(SYS_nanosleep, &spec, NULL) == -1 && errno == EINVAL);
  CHECK(syscall(-1, 0) == -1 && errno == ENOSYS);
  struct timeval before = {-1, 0};
  CHECK(select(0, NULL, NULL, NULL, &before) == -1 && errno == EINVAL);
  spec.tv_nsec = -1;
  CHECK(ppoll(NULL, 0, &spec, NULL) == -1 && errno == EINVAL);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  CHECK(pthread_mutex_timedlock(&mutex, &spec) == EINVAL);
  spec.tv_nsec = 0;
  CHECK(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &spec) == EINVAL);
}

// Each case waits for nothing or sleeps for an hour of virtual time, without wall time.
static void sleep_an_hour(int how) {
  const struct timespec hour = {hour_s, 0};
  struct timespec until;
  struct timeval value = {hour_s, 0};
  const int epoll = epoll_create1(0);
  switch (how) {
    case 0:
      CHECK(nanosleep(&hour, NULL) == 0);
      break;
    case 1:
      CHECK(__nanosleep(&hour, NULL) == 0);
      break;
    case 2:
      CHECK(thrd_sleep(&hour, NULL) == 0);
      break;
    case 3:
      CHECK(sleep(hour_s) == 0);
      break;
    case 4:
      CHECK(select(0, NULL, NULL, NULL, &value) == 0 && value.tv_sec == 0);
      break;
    case 5:
      CHECK(pselect(0, NULL, NULL, NULL, &hour, NULL) == 0);
      break;
    case 6:
      CHECK(poll(NULL, 0, hour_s * 1000) == 0);
      break;
    case 7:
      CHECK(ppoll(NULL, 0, &hour, NULL) == 0);
      break;
    case 8:
      CHECK(__poll_chk(NULL, 0, hour_s * 1000, 0) == 0);
      break;
    case 9:
      CHECK(syscall(SYS_nanosleep, &hour, NULL) == 0);
      break;
    case 10:
      clock_gettime(CLOCK_MONOTONIC, &until);
      until.tv_sec += hour_s;
      CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0);
      break;
    case 11:
      CHECK(syscall(SYS_clock_nanosleep, CLOCK_BOOTTIME, 0, &hour, NULL) == 0);
      break;
    default:
      CHECK(usleep(999999) == 0);
      CHECK(nanosleep(&(struct timespec){hour_s - 1, 1000}, NULL) == 0);
      break;
  }
  close(epoll);
}

static void check_sleeps(void) {
  clockid_t own;
  struct rusage use;
  CHECK(pthread_getcpuclockid(pthread_self(), &own) == 0);
  for (int how = 0; how <= 12; ++how) {
    const double date = seconds(CLOCK_REALTIME);
    const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    const double thread = seconds(own);
    const clock_t ticks = times(&(struct tms){0});
    sleep_an_hour(how);
    const double slept = seconds(CLOCK_REALTIME) - date;
    CHECK(slept > hour_s - 0.001 && slept < hour_s + 0.001);
    CHECK(seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu < 0.001);
    CHECK(seconds(own) - thread < 0.001);
    CHECK((times(NULL) - ticks) / sysconf(_SC_CLK_TCK) >= hour_s - 1);
  }
  CHECK(clock() < CLOCKS_PER_SEC);
  CHECK(getrusage(RUSAGE_SELF, &use) == 0 && use.ru_utime.tv_sec == 0 && use.ru_stime.tv_sec == 0);
}

static struct timespec soon(clockid_t clock) {
  struct timespec deadline;
  clock_gettime(clock, &deadline);
  deadline.tv_nsec += 20000000;
  deadline.tv_sec += deadline.tv_nsec / 1000000000;
  deadline.tv_nsec %= 1000000000;
  return deadline;
}

static void* wait_for_ever(void* argument) {
  sem_wait(argument);
  return NULL;
}

// Each case waits 20 ms for nothing, after which its deadline has been reached. What takes no time where time
// is virtual sleeps.
static void wait_for_nothing(int how, int is_virtual) {
  const struct timespec deadline = soon(CLOCK_REALTIME);
  const struct timespec duration = {0, 20000000};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  int pipe_ends[2];
  CHECK(pipe(pipe_ends) == 0);
  pthread_mutex_lock(&mutex);
  switch (how) {
    case 0:
      CHECK(pthread_cond_timedwait(&condition, &mutex, &deadline) == ETIMEDOUT);
      break;
    case 1:
      CHECK(pthread_mutex_timedlock(&mutex, &deadline) == ETIMEDOUT);
      break;
    case 2:
      pthread_rwlock_wrlock(&lock);
      CHECK(pthread_rwlock_timedwrlock(&lock, &deadline) == EDEADLK);
      if (is_virtual) sleep_an_hour(0);
      break;
    case 3:
      CHECK(sem_timedwait(&semaphore, &deadline) == -1 && errno == ETIMEDOUT);
      break;
    case 4: {
      mtx_t other;
      mtx_init(&other, mtx_timed);
      mtx_lock(&other);
      CHECK(mtx_timedlock(&other, &deadline) == thrd_timedout);
      break;
    }
    case 5: {
      pthread_t thread;
      pthread_create(&thread, NULL, wait_for_ever, &semaphore);
      CHECK(pthread_timedjoin_np(thread, NULL, &deadline) == ETIMEDOUT);
      sem_post(&semaphore);
      pthread_join(thread, NULL);
      break;
    }
    case 6: {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGUSR1);
      pthread_sigmask(SIG_BLOCK, &set, NULL);
      CHECK(sigtimedwait(&set, NULL, &duration) == -1 && errno == EAGAIN);
      break;
    }
    case 7: {
      const int epoll = epoll_create1(0);
      struct epoll_event event;
      CHECK(epoll_wait(epoll, &event, 1, 10) == 0 && epoll_pwait(epoll, &event, 1, 10, NULL) == 0);
      close(epoll);
      break;
    }
    case 8: {
      fd_set set;
      FD_ZERO(&set);
      FD_SET(pipe_ends[0], &set);
      CHECK(pselect(pipe_ends[0] + 1, &set, NULL, NULL, &duration, NULL) == 0);
      break;
    }
    case 9:
    case 10:
    case 11: {
      // As libraries that make their own locks call it.
      const long operation = how == 9    ? FUTEX_WAIT
                             : how == 10 ? FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME
                                         : FUTEX_WAIT_BITSET;
      const struct timespec until = how == 9 ? duration : how == 10 ? deadline : soon(CLOCK_MONOTONIC);
      unsigned word = 7;
      CHECK(syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 8, &duration, NULL, 0) == -1);
      CHECK(errno == EAGAIN);
      CHECK(syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, 7, &until, NULL, ~0) == -1);
      CHECK(errno == ETIMEDOUT);
      CHECK(syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0) == 0);
      break;
    }
    case 12:
      CHECK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &deadline, NULL) == 0);
      break;
    default: {
      // A timer with a virtual deadline takes as long in the host.
      const int timer = timerfd_create(CLOCK_REALTIME, 0);
      unsigned long count = 0;
      CHECK(timerfd_settime(timer, TFD_TIMER_ABSTIME, &(struct itimerspec){{0, 0}, deadline}, NULL) == 0);
      CHECK(read(timer, &count, sizeof count) == sizeof count && count == 1);
      if (is_virtual) sleep_an_hour(0);
      close(timer);
      break;
    }
  }
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

enum { ways_to_wait = 14, locked_by_itself = 2 };

// Whether the date is one of the run's days, wherever in them the host's speed leads, and not of the host's
// year.
static int is_same_node(time_t time) {
  return time >= date_s - 60 && time < date_s + 1000 * hour_s;
}

// A child sees dates as before MPI, at any time, and does not see its parent's clock.
static void check_dates_of_child(time_t began) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(time(NULL) >= began && is_same_node(time(NULL)) ? 0 : 1);
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

// Before MPI, time passes as in the host, with dates from a minute before that of virtual time zero.
static time_t check_early_dates(void) {
  const time_t began = time(NULL);
  CHECK(is_same_node(began));
  for (int how = 0; how < ways_to_wait; ++how) {
    if (how == locked_by_itself) continue;
    const double before = seconds(CLOCK_MONOTONIC);
    const double date = seconds(CLOCK_REALTIME);
    wait_for_nothing(how, 0);
    CHECK(seconds(CLOCK_MONOTONIC) - before >= 0.0199 && seconds(CLOCK_REALTIME) - date >= 0.0199);
  }
  struct timeval now = {0};
  struct timespec spec = {0};
  CHECK(gettimeofday(&now, NULL) == 0 && timespec_get(&spec, TIME_UTC) == TIME_UTC);
  CHECK(now.tv_sec >= began && spec.tv_sec >= now.tv_sec && is_same_node(spec.tv_sec));
  check_dates_of_child(began);
  return spec.tv_sec;
}

// A deadline of before virtual time has passed, whatever its nanoseconds.
static void check_passed_deadline(void) {
  const struct timespec deadline = {date_s - 1, 999999999};
  const double before = seconds(CLOCK_MONOTONIC);
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  CHECK(sem_timedwait(&semaphore, &deadline) == -1 && errno == ETIMEDOUT);
  CHECK(seconds(CLOCK_MONOTONIC) - before < 0.001);
}

int main(int argc, char** argv) {
  const time_t early = check_early_dates();
  const struct World world = begin_program(&argc, &argv);
  CHECK(early >= date_s || time(NULL) > early);  // unless the start has taken a minute
  check_passed_deadline();
  check_dates_of_child(early);
  check_dates();
  check_wrong_arguments();
  check_sleeps();
  for (int how = 0; how < 2 * ways_to_wait; ++how) {
    const struct timespec two_months = {60 * 86400, 0};
    if (how == ways_to_wait) CHECK(nanosleep(&two_months, NULL) == 0);
    const double before = seconds(CLOCK_MONOTONIC);
    wait_for_nothing(how % ways_to_wait, 1);
    CHECK(seconds(CLOCK_MONOTONIC) - before >= 0.0199);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == 0) printf("passed\n");
  MPI_Finalize();
  // The program's time continues after MPI.
  const double before = seconds(CLOCK_REALTIME);
  sleep_an_hour(0);
  const double slept = seconds(CLOCK_REALTIME) - before;
  return before > date_s && before < 2.0 * date_s - date_s / 2.0 && slept > hour_s - 0.001 ? 0 : 1;
}
