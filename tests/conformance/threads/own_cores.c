/* A rank has set the cores of its threads, which it asks for again while the simulator moves it to others. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static cpu_set_t first; /* the first core on which the process may run */
static cpu_set_t every; /* all of them */

static int differs(const cpu_set_t* from) {
  return !CPU_EQUAL(from, &first);
}

static void* inherits(void* count) {
  cpu_set_t cores;
  *(int*)count += pthread_getaffinity_np(pthread_self(), sizeof cores, &cores) != 0 || differs(&cores);
  *(int*)count += sched_getaffinity(0, sizeof cores, &cores) != 0 || differs(&cores);
  return NULL;
}

/* Another thread sets the cores of this one, by its number or by its name. */
struct Other {
  pthread_barrier_t meeting;
  pid_t number;
  int wrong;
};

static void* is_set(void* given) {
  struct Other* const other = given;
  other->number = gettid();
  pthread_barrier_wait(&other->meeting);
  pthread_barrier_wait(&other->meeting);
  inherits(&other->wrong);
  pthread_barrier_wait(&other->meeting);
  return NULL;
}

enum Way { by_name, by_number, by_both };

static int count_wrong_of_other(enum Way way) {
  struct Other other = {.wrong = 0};
  pthread_t thread;
  cpu_set_t cores;
  pthread_barrier_init(&other.meeting, NULL, 2);
  pthread_create(&thread, NULL, is_set, &other);
  pthread_barrier_wait(&other.meeting);
  if (way == by_both) other.wrong += sched_setaffinity(other.number, sizeof every, &every) != 0;
  other.wrong += way == by_number ? sched_setaffinity(other.number, sizeof first, &first) != 0
                                  : pthread_setaffinity_np(thread, sizeof first, &first) != 0;
  for (int i = 0; i < 200; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    other.wrong += sched_getaffinity(other.number, sizeof cores, &cores) != 0 || differs(&cores);
    other.wrong += pthread_getaffinity_np(thread, sizeof cores, &cores) != 0 || differs(&cores);
  }
  pthread_barrier_wait(&other.meeting);
  pthread_barrier_wait(&other.meeting);
  pthread_join(thread, NULL);
  return other.wrong;
}

/* Before MPI_Init, and in a copy of the process. */
static int count_wrong_of_early(void) {
  struct Other other = {.wrong = 0};
  pthread_t thread;
  int status = 0;
  pthread_barrier_init(&other.meeting, NULL, 2);
  pthread_create(&thread, NULL, is_set, &other);
  pthread_barrier_wait(&other.meeting);
  other.wrong += sched_setaffinity(other.number, sizeof every, &every) != 0;
  other.wrong += pthread_setaffinity_np(thread, sizeof first, &first) != 0;
  pthread_barrier_wait(&other.meeting);
  pthread_barrier_wait(&other.meeting);
  pthread_join(thread, NULL);
  other.wrong += pthread_setaffinity_np(pthread_self(), sizeof first, &first) != 0;
  const pid_t child = fork();
  if (child == 0) {
    inherits(&status);
    _exit(status);
  }
  other.wrong += waitpid(child, &status, 0) != child || status != 0;
  other.wrong += pthread_setaffinity_np(pthread_self(), sizeof every, &every) != 0;
  return other.wrong;
}

int main(void) {
  sched_getaffinity(0, sizeof every, &every);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++i) {
    if (CPU_ISSET(i, &every)) CPU_SET(i, &first);
  }
  int wrong = count_wrong_of_early();
  MPI_Init(NULL, NULL);
  wrong += count_wrong_of_other(by_name) + count_wrong_of_other(by_number) + count_wrong_of_other(by_both);
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setaffinity_np(&attributes, sizeof first, &first);
  pthread_create(&thread, &attributes, inherits, &wrong);
  pthread_join(thread, NULL);
  if (pthread_setaffinity_np(pthread_self(), sizeof first, &first) != 0) return 1;
  pthread_create(&thread, NULL, inherits, &wrong);
  pthread_join(thread, NULL);
  for (int i = 0; i < 2000; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    inherits(&wrong);
  }
  printf("%d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
