// What timers count, keep and show. Rank 1 only waits.
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static volatile int hits, code, value, overrun;
static double began, times[100];
static sem_t ended;
static sigjmp_buf place;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)(time.tv_sec % 1000000) + (double)time.tv_nsec * 1e-9;
}

static void begin(void) {
  hits = 0;
  began = now();
}

static int is_at(double time, double expected) {
  return fabs(time - expected) < 1e-4;
}

static int is_now(double expected) {
  return is_at(now() - began, expected);
}

static void handle(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  if (hits < 100) times[hits] = now() - began;
  ++hits;
  code = info->si_code;
  value = info->si_value.sival_int;
  overrun = info->si_overrun;
}

static void tell(union sigval given) {
  times[hits++] = now() - began;
  value = given.sival_int;
  sem_post(&ended);
}

static void leave(int signal) {
  (void)signal;
  siglongjmp(place, 1);
}

static struct timespec seconds(double s) {
  return (struct timespec){(time_t)s, (long)((s - (double)(time_t)s) * 1e9 + 0.5)};
}

static struct itimerspec every(double first, double interval) {
  return (struct itimerspec){.it_value = seconds(first), .it_interval = seconds(interval)};
}

static double length(struct timespec time) {
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int sleep_for(double s) {
  const struct timespec time = seconds(s);
  return nanosleep(&time, NULL);
}

static void set(timer_t timer, double first, double interval) {
  const struct itimerspec setting = every(first, interval);
  CHECK(timer_settime(timer, 0, &setting, NULL) == 0);
}

static void alarms(void) {
  begin();
  CHECK(alarm(1) == 0);
  CHECK(sleep(10) == 9 && hits == 1 && is_at(times[0], 1) && is_now(1));
  begin();
  alarm(5);
  CHECK(sleep(2) == 0 && alarm(0) == 3 && sleep(5) == 0 && hits == 0);
  begin();
  const struct itimerval repeated = {.it_value = {0, 500000}, .it_interval = {0, 250000}};
  struct itimerval left;
  CHECK(setitimer(ITIMER_REAL, &repeated, NULL) == 0);
  for (int i = 0; i < 4; ++i) CHECK(sleep_for(2) == -1 && errno == EINTR);
  CHECK(hits == 4 && is_at(times[0], 0.5) && is_at(times[3], 1.25) && code == SI_KERNEL);
  CHECK(getitimer(ITIMER_REAL, &left) == 0 && left.it_value.tv_usec == 250000);
  CHECK(setitimer(ITIMER_REAL, &(struct itimerval){0}, &left) == 0 && left.it_interval.tv_usec == 250000);
  CHECK(getitimer(ITIMER_REAL, &left) == 0 && left.it_value.tv_sec == 0 && left.it_value.tv_usec == 0);
  CHECK(setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 1000000}}, NULL) == -1 && errno == EINVAL);
  CHECK(sleep_for(1) == 0);
}

static void jumps(void) {
  signal(SIGUSR1, leave);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  timer_t timer;
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  for (int i = 0; i < 3; ++i) {
    begin();
    if (sigsetjmp(place, 1) == 0) {
      set(timer, 1, 0);
      sleep_for(100);
      CHECK(0);
    }
    CHECK(is_now(1));
  }
  CHECK(timer_delete(timer) == 0);
}

static void signals(void) {
  struct sigevent event = {
      .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 42};
  timer_t timer;
  CHECK(timer_create(CLOCK_REALTIME, &event, &timer) == 0);
  begin();
  set(timer, 1, 0.5);
  for (int i = 0; i < 3; ++i) CHECK(sleep_for(3) == -1 && errno == EINTR);
  CHECK(hits == 3 && is_at(times[2], 2) && code == SI_TIMER && value == 42 && overrun == 0);
  struct itimerspec left;
  CHECK(timer_gettime(timer, &left) == 0 && is_at(length(left.it_value), 0.5));
  // While its signal is blocked, the timer counts. Other threads, as those of Open MPI, may not block it.
  set(timer, 0, 0);
  CHECK(timer_delete(timer) == 0);
  event.sigev_notify = SIGEV_THREAD_ID;
  event._sigev_un._tid = gettid();
  CHECK(timer_create(CLOCK_REALTIME, &event, &timer) == 0);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMIN + 1);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  begin();
  set(timer, 1, 0.5);
  CHECK(sleep_for(3.2) == 0 && hits == 0);
  sigprocmask(SIG_SETMASK, &before, NULL);
  CHECK(hits == 1 && overrun == 4 && timer_getoverrun(timer) == 4);
  set(timer, 0, 0);
  // A date that has passed.
  begin();
  struct itimerspec date = {.it_value = {.tv_sec = 1}};
  CHECK(timer_settime(timer, TIMER_ABSTIME, &date, NULL) == 0 && is_now(0) && hits == 1);
  date.it_value.tv_nsec = 1000000000;
  CHECK(timer_settime(timer, 0, &date, NULL) == -1 && errno == EINVAL);
  CHECK(timer_delete(timer) == 0 && timer_delete(timer) == -1 && errno == EINVAL);
  event.sigev_notify = SIGEV_NONE;
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  set(timer, 2, 0);
  CHECK(sleep_for(0.5) == 0 && timer_gettime(timer, &left) == 0 && is_at(length(left.it_value), 1.5));
  CHECK(sleep_for(3) == 0 && timer_gettime(timer, &left) == 0 && length(left.it_value) == 0);
  CHECK(timer_delete(timer) == 0);
}

// A sleep takes no CPU time, polling does.
static void cpu_time(void) {
  begin();
  const struct itimerval repeated = {.it_value = {0, 200000}, .it_interval = {0, 200000}};
  CHECK(setitimer(ITIMER_PROF, &repeated, NULL) == 0 && sleep_for(1) == 0 && hits == 0);
  while (now() - began < 1.5) continue;
  CHECK(setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL) == 0);
  CHECK(hits == 2 && is_at(times[0], 1.2) && is_at(times[1], 1.4));
}

static uint64_t ends_of(int file) {
  uint64_t ends = 0;
  const ssize_t bytes = read(file, &ends, sizeof ends);
  return bytes == sizeof ends ? ends : bytes == -1 && errno == EAGAIN ? 0 : UINT64_MAX;
}

static void set_file(int file, double first, double interval) {
  const struct itimerspec setting = every(first, interval);
  CHECK(timerfd_settime(file, 0, &setting, NULL) == 0);
}

static void descriptors(void) {
  const int file = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  int ends[2];
  CHECK(pipe(ends) == 0 && ends_of(file) == 0);
  begin();
  set_file(file, 1, 0.5);
  CHECK(ends_of(file) == 0 && sleep_for(1.6) == 0 && ends_of(file) == 2 && ends_of(file) == 0);
  struct pollfd files[] = {{file, POLLIN, 0}, {ends[0], POLLIN, 0}};
  CHECK(poll(files, 1, -1) == 1 && is_now(2) && ends_of(file) == 1);
  CHECK(poll(files, 2, 400) == 0 && is_now(2.4));
  CHECK(poll(files, 2, 400) == 1 && is_now(2.5) && files[0].revents == POLLIN && ends_of(file) == 1);
  struct itimerspec left;
  CHECK(timerfd_gettime(file, &left) == 0 && is_at(length(left.it_value), 0.5));
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  CHECK(epoll_ctl(set, EPOLL_CTL_ADD, file, &event) == 0);
  CHECK(epoll_wait(set, &event, 1, -1) == 1 && is_now(3) && ends_of(file) == 1);
  close(set);
  close(file);
  // The number is another file's.
  int others[2];
  CHECK(pipe(others) == 0 && (others[0] == file || others[1] == file || others[0] == set));
  CHECK(write(others[1], "12345678", 8) == 8 && sleep_for(1) == 0);
  char text[9] = "";
  CHECK(read(others[0], text, 8) == 8 && strcmp(text, "12345678") == 0);

  const int blocking = timerfd_create(CLOCK_REALTIME, 0);
  begin();
  set_file(blocking, 1, 1);
  CHECK(ends_of(blocking) == 1 && is_now(1) && sleep_for(2.5) == 0 && ends_of(blocking) == 2 && is_now(3.5));
  CHECK(ends_of(blocking) == 1 && is_now(4));
  CHECK(setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 300000}}, NULL) == 0);
  CHECK(ends_of(blocking) == UINT64_MAX && errno == EINTR && is_now(4.3));
  struct itimerspec date = {.it_value = {.tv_nsec = 1}};
  CHECK(timerfd_settime(blocking, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &date, &left) == 0);
  CHECK(is_at(length(left.it_value), 0.7) && ends_of(blocking) == 1);
  CHECK(timerfd_settime(blocking, 77, &date, NULL) == -1 && errno == EINVAL);
  close(blocking);
}

// From here on the process has several threads.
static void threads(void) {
  struct sigevent event = {
      .sigev_notify = SIGEV_THREAD, .sigev_notify_function = tell, .sigev_value.sival_int = 9};
  timer_t timer;
  sem_init(&ended, 0, 0);
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  begin();
  set(timer, 1, 0.5);
  for (int i = 0; i < 3; ++i) CHECK(sem_wait(&ended) == 0);
  set(timer, 0, 0);
  CHECK(hits == 3 && is_at(times[0], 1) && is_at(times[2], 2) && value == 9);
  begin();
  set(timer, 1, 0);
  CHECK(sleep_for(3) == 0 && hits == 1 && is_at(times[0], 1) && is_now(3));
  CHECK(timer_delete(timer) == 0);
  begin();
  const struct itimerval soon = {.it_value = {0, 300000}};
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0 && sleep_for(3) == -1 && is_now(0.3) && hits == 1);
  int ends[2];
  char byte;
  CHECK(pipe(ends) == 0 && setitimer(ITIMER_REAL, &soon, NULL) == 0);
  CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR && is_now(0.6) && hits == 2);
}

int main(int argc, char** argv) {
  const struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
  for (int i = 0; i < 3; ++i) sigaction((int[]){SIGALRM, SIGPROF, SIGRTMIN + 1}[i], &action, NULL);
  alarm(100);  // begins anew with virtual time
  const struct World world = begin_program(&argc, &argv);
  if (world.rank == 0) {
    struct itimerval left;
    CHECK(getitimer(ITIMER_REAL, &left) == 0 && is_at((double)left.it_value.tv_sec, 100) == 1);
    alarm(0);
    alarms();
    jumps();
    signals();
    cpu_time();
    descriptors();
    threads();
  }
  alarm(0);
  return end_program(world);
}
