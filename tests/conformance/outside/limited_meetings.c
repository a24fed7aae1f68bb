// A rank waits with a time limit for what another one does after a sleep. Argument: how they meet.
#define _GNU_SOURCE
#include <mpi.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, set = 0, result = 0;
  char name[40], byte[8] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int by_queue = argc == 2 && strcmp(argv[1], "queue") == 0;
  int number = (int)getpid();
  MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(name, sizeof name, "/apenet-meeting-%d", number);
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof byte};
  if (rank == 0 && !by_queue) set = semget(IPC_PRIVATE, 1, 0600);
  MPI_Bcast(&set, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const mqd_t queue = by_queue ? mq_open(name, O_CREAT | O_RDWR, 0600, &attributes) : -1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (by_queue) mq_unlink(name);
  struct sembuf take = {.sem_op = -1}, give = {.sem_op = 1};
  if (rank == 0) {
    const struct timespec duration = {.tv_sec = 30};
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += duration.tv_sec;
    result = by_queue ? mq_timedreceive(queue, byte, sizeof byte, NULL, &end) < 0
                      : semtimedop(set, &take, 1, &duration);
  } else {
    sleep(1);
    result = by_queue ? mq_send(queue, byte, 1, 0) : semop(set, &give, 1);
  }
  printf("%s\n", result == 0 ? "met" : "missed");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && !by_queue) semctl(set, 0, IPC_RMID);
  MPI_Finalize();
  return 0;
}
