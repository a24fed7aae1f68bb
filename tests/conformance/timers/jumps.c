// The limit of a call that waits in the host: an alarm whose handler leaves it by a jump. Prints the virtual
// time of each of three such calls, in ms. Arguments: the call; "jump", "exit": the handler ends the process,
// or "above": it runs on an alternate stack above that of the call.
#define _GNU_SOURCE
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf before_call;
static bool exits;

static void leave(int signal) {
  (void)signal;
  if (exits) _exit(3);
  // A jump within the handler leaves nothing.
  static sigjmp_buf within;
  if (sigsetjmp(within, 1) == 0) siglongjmp(within, 1);
  siglongjmp(before_call, 1);
}

static void wait_for_ever(const char* call) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  int ends[2];
  char byte;
  if (pipe(ends) != 0) abort();
  if (strcmp(call, "read") == 0) {
    (void)!read(ends[0], &byte, 1);
  } else if (strcmp(call, "poll") == 0) {
    poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, -1);
  } else if (strcmp(call, "mutex") == 0) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
  } else if (strcmp(call, "rwlock") == 0) {
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_wrlock(&lock);
  } else if (strcmp(call, "condition") == 0) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&own);
    pthread_cond_wait(&condition, &own);
  } else if (strcmp(call, "semaphore") == 0) {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    sem_wait(&semaphore);
  } else if (strcmp(call, "message") == 0) {
    const int queue = msgget(IPC_PRIVATE, 0600);
    struct {
      long type;
      char text[1];
    } message;
    if (sigsetjmp(before_call, 1) == 0) msgrcv(queue, &message, 1, 0, 0);
    msgctl(queue, IPC_RMID, NULL);
  }
}

int main(int argc, char** argv) {
  enum { stack_bytes = 65536 };
  char stack[stack_bytes];
  MPI_Init(&argc, &argv);
  exits = strcmp(argv[2], "exit") == 0;
  signal(SIGALRM, leave);
  if (strcmp(argv[2], "above") == 0) {
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = stack_bytes}, NULL);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = leave, .sa_flags = SA_ONSTACK}, NULL);
  }
  for (int i = 0; i < 3; ++i) {
    const double began_s = MPI_Wtime();
    // The host is busy between the calls: that takes no virtual time.
    for (volatile long turns = 0; turns < 20000000; ++turns) continue;
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 30000}}, NULL);
    if (sigsetjmp(before_call, 1) == 0) wait_for_ever(argv[1]);
    printf("%.2f\n", 1e3 * (MPI_Wtime() - began_s));
  }
  MPI_Finalize();
}
