// How threads of programs meet: a pool that waits with a limit, readers and writers, a heartbeat, one thread
// that logs for others, timers of each kind. The argument says which one; the times that are printed follow
// by hand.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"

static struct World world;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

static void sleep_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  CHECK(nanosleep(&time, NULL) == 0);
}

static struct timespec after_ms(long ms) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  const long ns = time.tv_nsec + ms * 1000000;
  return (struct timespec){time.tv_sec + ns / 1000000000, ns % 1000000000};
}

// A message to the next rank and one from the rank before.
static void exchange(int tag) {
  int in = -1;
  MPI_Sendrecv(&world.rank, 1, MPI_INT, (world.rank + 1) % world.size, tag, &in, 1, MPI_INT,
               (world.rank + world.size - 1) % world.size, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(in == (world.rank + world.size - 1) % world.size);
}

enum { most_threads = 8 };

static void run_threads(int count, void* (*routine)(void*)) {
  pthread_t threads[most_threads];
  int numbers[most_threads];
  for (int i = 0; i < count; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, routine, &numbers[i]) == 0);
  }
  for (int i = 0; i < count; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

enum { jobs = 12 };
static int next_job, jobs_done, limits;

// Job j takes 10, 20 or 30 ms. A thread without a job waits for 50 ms at most, and ends after the second
// limit.
static void* serve(void* argument) {
  const int thread = *(int*)argument;
  for (int waits = 0; waits < 2;) {
    pthread_mutex_lock(&mutex);
    if (next_job == jobs) {
      const struct timespec limit = after_ms(50);
      const int error = pthread_cond_timedwait(&condition, &mutex, &limit);
      CHECK(error == ETIMEDOUT);
      ++waits;
      ++limits;
      pthread_mutex_unlock(&mutex);
      continue;
    }
    const int job = next_job++;
    pthread_mutex_unlock(&mutex);
    sleep_ms(10 * (job % 3 + 1));
    exchange(job);
    pthread_mutex_lock(&mutex);
    ++jobs_done;
    printf("rank %d: thread %d did job %d at %.3f\n", world.rank, thread, job, MPI_Wtime());
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void pool(void) {
  run_threads(4, serve);
  printf("rank %d: %d jobs, %d limits, at %.3f\n", world.rank, jobs_done, limits, MPI_Wtime());
}

static int value;

// Threads 0 and 1 write, each for 5 ms and then after 20 ms again; the others read.
static void* read_or_write(void* argument) {
  const int thread = *(int*)argument;
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    if (thread < 2) {
      pthread_rwlock_wrlock(&shared);
      const int before = value;
      sleep_ms(5);
      value = before + 1;
    } else {
      pthread_rwlock_rdlock(&shared);
      sum = 10 * sum + value;
    }
    pthread_rwlock_unlock(&shared);
    sleep_ms(20);
  }
  if (thread >= 2) printf("rank %d: thread %d read %d at %.3f\n", world.rank, thread, sum, MPI_Wtime());
  return NULL;
}

static void readers(void) {
  run_threads(8, read_or_write);
  exchange(0);
  printf("rank %d: wrote %d times, at %.3f\n", world.rank, value, MPI_Wtime());
}

static int is_over;

static void* beat(void* unused) {
  (void)unused;
  for (int count = 1; !is_over; ++count) {
    sleep(2);
    pthread_mutex_lock(&mutex);
    if (!is_over) printf("rank %d: beat %d at %.3f\n", world.rank, count, MPI_Wtime());
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

// Seven seconds of work, in steps of a tenth.
static void heartbeat(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, beat, NULL) == 0);
  for (int i = 0; i < 70; ++i) {
    sleep_ms(100);
    exchange(i);
  }
  pthread_mutex_lock(&mutex);
  is_over = 1;
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
  printf("rank %d: at %.2f\n", world.rank, MPI_Wtime());
}

static char lines[16][64];
static int first_line, last_line;

static void say(int thread, int number) {
  pthread_mutex_lock(&mutex);
  CHECK(last_line - first_line < 16);
  snprintf(lines[last_line++ % 16], sizeof *lines, "thread %d says %d", thread, number);
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
}

static void* write_log(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  while (!is_over || first_line < last_line) {
    if (first_line == last_line) pthread_cond_wait(&condition, &mutex);
    for (; first_line < last_line; ++first_line) printf("rank %d: %s\n", world.rank, lines[first_line % 16]);
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* speak(void* argument) {
  const int thread = *(int*)argument;
  for (int i = 0; i < 5; ++i) {
    say(thread, i);
    exchange(thread);
  }
  return NULL;
}

static void log_lines(void) {
  pthread_t logger;
  CHECK(pthread_create(&logger, NULL, write_log, NULL) == 0);
  run_threads(3, speak);
  pthread_mutex_lock(&mutex);
  is_over = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  pthread_join(logger, NULL);
}

static volatile int alarms;

static void handle(int signal) {
  (void)signal;
  ++alarms;
}

static int ticks;

static void tick(union sigval unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  ++ticks;
  printf("rank %d: tick %d at %.3f\n", world.rank, ticks, MPI_Wtime());
  pthread_mutex_unlock(&mutex);
}

// A timer that calls every 0.3 s, an alarm that ends a sleep after 1 s, an interval timer and a descriptor.
static void timers(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = tick};
  timer_t timer;
  const struct itimerspec every = {{0, 300000000}, {0, 300000000}};
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &every, NULL) == 0);
  signal(SIGALRM, handle);
  alarm(1);
  CHECK(sleep(5) == 4 && alarms == 1);
  printf("rank %d: alarm at %.3f\n", world.rank, MPI_Wtime());
  CHECK(timer_delete(timer) == 0);
  exchange(0);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 50000}, {0, 50000}}, NULL);
  while (alarms < 4) pause();
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  const int file = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec tenths = {{0, 100000000}, {0, 100000000}};
  CHECK(timerfd_settime(file, 0, &tenths, NULL) == 0);
  unsigned long long ends = 0, sum = 0;
  while (sum < 5) {
    CHECK(read(file, &ends, sizeof ends) == sizeof ends);
    sum += ends;
  }
  printf("rank %d: %d ticks, %d alarms, at %.3f\n", world.rank, ticks, alarms, MPI_Wtime());
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {
      {"pool", pool}, {"readers", readers}, {"heartbeat", heartbeat}, {"log", log_lines}, {"timers", timers}};
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  CHECK(argc == 2 && provided == MPI_THREAD_MULTIPLE);
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; ++i)
    if (strcmp(argv[1], cases[i].name) == 0) cases[i].run();
  return end_program(world);
}
