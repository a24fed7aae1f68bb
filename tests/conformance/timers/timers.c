// Each timer that sends a signal beside each wait of the C library and of MPI. For each pair a rank prints
// what the wait returned, and when the handler ran and the wait ended, in units since the timer was set: the
// timer is due after one, the wait would last three.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"

static const long unit_us = 20000;
static struct World world;
static volatile int hits;
static double began, handled;
static int silent_pipe[2], sockets[2];
static sigset_t waited, before;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)(time.tv_sec % 1000000) * 1e6 / unit_us + (double)time.tv_nsec / 1e3 / unit_us;
}

static void handle(int signal) {
  (void)signal;
  if (hits++ == 0) handled = now() - began;
}

static struct timespec units(long count) {
  const long us = count * unit_us;
  return (struct timespec){us / 1000000, us % 1000000 * 1000};
}

static struct timespec date(clockid_t clock, long count) {
  struct timespec time;
  clock_gettime(clock, &time);
  const long ns = time.tv_nsec + count * unit_us * 1000;
  return (struct timespec){time.tv_sec + ns / 1000000000, ns % 1000000000};
}

static void set_alarm(void) {
  ualarm(unit_us, 0);
}

static void set_itimer(void) {
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, unit_us}}, NULL);
}

static void set_timer(struct sigevent event, int flags, struct timespec first) {
  static timer_t timer;
  static int is_made;
  if (is_made++ > 0) CHECK(timer_delete(timer) == 0);
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  CHECK(timer_settime(timer, flags, &(struct itimerspec){.it_value = first}, NULL) == 0);
}

static void set_timer_of_process(void) {
  set_timer((struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM}, 0, units(1));
}

static void set_timer_of_thread(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
  event._sigev_un._tid = gettid();
  set_timer(event, 0, units(1));
}

static void set_timer_to_date(void) {
  set_timer((struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM}, TIMER_ABSTIME,
            date(CLOCK_MONOTONIC, 1));
}

static const struct {
  const char* name;
  void (*set)(void);
} timers[] = {{"alarm", set_alarm},
              {"itimer", set_itimer},
              {"timer", set_timer_of_process},
              {"thread", set_timer_of_thread},
              {"date", set_timer_to_date}};

// Waits return 0 or an error.
static int failed(int result) {
  return result < 0 ? errno : 0;
}

static int in_nanosleep(void) {
  struct timespec left = units(3);
  const int error = failed(nanosleep(&left, &left));
  return error == EINTR && left.tv_nsec / 1000 != 2 * unit_us ? -1 : error;
}

static int in_clock_nanosleep(void) {
  const struct timespec until = date(CLOCK_REALTIME, 3);
  return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
}

static int in_usleep(void) {
  return failed(usleep(3 * unit_us));
}

static int in_thrd_sleep(void) {
  const struct timespec length = units(3);
  return thrd_sleep(&length, NULL) == -1 ? EINTR : 0;
}

static int in_poll(void) {
  return failed(poll(NULL, 0, (int)(3 * unit_us / 1000)));
}

static int in_select(void) {
  struct timeval left = {0, 3 * unit_us};
  const int error = failed(select(0, NULL, NULL, NULL, &left));
  return error == EINTR && left.tv_usec != 2 * unit_us ? -1 : error;
}

static int in_pselect(void) {
  const struct timespec length = units(3);
  return failed(pselect(0, NULL, NULL, NULL, &length, NULL));
}

static int in_pause(void) {
  return failed(pause());
}

static int in_sigsuspend(void) {
  sigset_t none;
  sigemptyset(&none);
  return failed(sigsuspend(&none));
}

static int in_poll_of_pipe(void) {
  struct pollfd file = {silent_pipe[0], POLLIN, 0};
  return failed(poll(&file, 1, (int)(3 * unit_us / 1000)));
}

static int in_endless_poll(void) {
  struct pollfd file = {silent_pipe[0], POLLIN, 0};
  return failed(poll(&file, 1, -1));
}

static int in_select_of_pipe(void) {
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(silent_pipe[0], &reads);
  return failed(select(silent_pipe[0] + 1, &reads, NULL, NULL, NULL));
}

static int in_epoll(void) {
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(set, EPOLL_CTL_ADD, silent_pipe[0], &event);
  const int error = failed(epoll_wait(set, &event, 1, (int)(3 * unit_us / 1000)));
  close(set);
  return error;
}

static int in_read(void) {
  char byte;
  return failed((int)read(silent_pipe[0], &byte, 1));
}

static int in_recv(void) {
  char byte;
  return failed((int)recv(sockets[0], &byte, 1, 0));
}

static int in_sem_wait(void) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  return failed(sem_wait(&semaphore));
}

static int in_sem_timedwait(void) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const struct timespec until = date(CLOCK_REALTIME, 3);
  return failed(sem_timedwait(&semaphore, &until));
}

static int in_futex(void) {
  int word = 0;
  const struct timespec length = units(3);
  return failed((int)syscall(SYS_futex, &word, FUTEX_WAIT, 0, &length, NULL, 0));
}

// No signal ends these.
static int in_condition(void) {
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const struct timespec until = date(CLOCK_REALTIME, 3);
  pthread_mutex_lock(&mutex);
  const int error = pthread_cond_timedwait(&condition, &mutex, &until);
  pthread_mutex_unlock(&mutex);
  return error;
}

static int in_clock_reads(void) {
  while (now() - began < 3) continue;
  return 0;
}

// Both ranks of a pair receive from each other what each has sent after its sleep.
static int in_recv_of_mpi(void) {
  const int other = world.rank ^ 1;
  int sent = 0;
  const double from = now();
  if (world.rank % 2 == 0) {
    MPI_Recv(&sent, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
  }
  while (now() - from < 3) usleep(unit_us);
  MPI_Send(&sent, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  return 0;
}

// The signal is blocked: it has no handler's time.
static int taken(int signal) {
  return signal == SIGALRM ? 0 : errno;
}

static int in_sigwait(void) {
  int signal = 0;
  return sigwait(&waited, &signal) == 0 ? taken(signal) : -1;
}

static int in_sigwaitinfo(void) {
  return taken(sigwaitinfo(&waited, NULL));
}

static int in_sigtimedwait(void) {
  const struct timespec length = units(3);
  return taken(sigtimedwait(&waited, NULL, &length));
}

static int in_blocked_sleep(void) {
  return in_nanosleep();
}

static const struct {
  const char* name;
  int (*wait)(void);
  int is_blocked;
} waits[] = {{"nanosleep", in_nanosleep, 0},
             {"clock_nanosleep", in_clock_nanosleep, 0},
             {"usleep", in_usleep, 0},
             {"thrd_sleep", in_thrd_sleep, 0},
             {"poll", in_poll, 0},
             {"select", in_select, 0},
             {"pselect", in_pselect, 0},
             {"pause", in_pause, 0},
             {"sigsuspend", in_sigsuspend, 0},
             {"poll_of_pipe", in_poll_of_pipe, 0},
             {"endless_poll", in_endless_poll, 0},
             {"select_of_pipe", in_select_of_pipe, 0},
             {"epoll", in_epoll, 0},
             {"read", in_read, 0},
             {"recv", in_recv, 0},
             {"sem_wait", in_sem_wait, 0},
             {"sem_timedwait", in_sem_timedwait, 0},
             {"futex", in_futex, 0},
             {"condition", in_condition, 0},
             {"clock_reads", in_clock_reads, 0},
             {"recv_of_mpi", in_recv_of_mpi, 0},
             {"sigwait", in_sigwait, 1},
             {"sigwaitinfo", in_sigwaitinfo, 1},
             {"sigtimedwait", in_sigtimedwait, 1},
             {"blocked_sleep", in_blocked_sleep, 1}};

int main(int argc, char** argv) {
  world = begin_program(&argc, &argv);
  CHECK(pipe(silent_pipe) == 0);
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  sigemptyset(&waited);
  sigaddset(&waited, SIGALRM);
  const struct sigaction action = {.sa_handler = handle};
  sigaction(SIGALRM, &action, NULL);
  for (size_t t = 0; t < sizeof timers / sizeof *timers; ++t) {
    for (size_t w = 0; w < sizeof waits / sizeof *waits; ++w) {
      if (waits[w].is_blocked) sigprocmask(SIG_BLOCK, &waited, &before);
      hits = 0;
      handled = 0;
      MPI_Barrier(MPI_COMM_WORLD);
      began = now();
      timers[t].set();
      const int error = waits[w].wait();
      const double ended = now() - began;
      if (waits[w].is_blocked) sigprocmask(SIG_SETMASK, &before, NULL);
      printf("%d %s %s %s %d %.2f %.2f\n", world.rank, timers[t].name, waits[w].name,
             error > 0   ? strerrorname_np(error)
             : error < 0 ? "wrong"
                         : "0",
             hits, handled, ended);
    }
  }
  MPI_Finalize();
  return 0;
}
