// Ranks that wait in MPI while something continues outside it; the first argument selects what.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../c/check.h"
#include "../c/host_call.h"

static struct World world;

static void send_to_all(void) {
  const int value = 1;
  for (int rank = 1; rank < world.size; ++rank) MPI_Send(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
}

static void receive(int rank) {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// CPU time of the host, not of the simulated machine.
static double cpu_seconds(void) {
  return host_seconds(CLOCK_THREAD_CPUTIME_ID);
}

static void* computes(void* argument) {
  const double until = cpu_seconds() + atof(argument);
  while (cpu_seconds() < until) continue;
  send_to_all();
  return NULL;
}

static void* sleeps_in_a_process(void* argument) {
  char command[64];
  snprintf(command, sizeof command, "sleep %s", (const char*)argument);
  if (system(command) != 0) exit(3);
  send_to_all();
  return NULL;
}

static void* computes_in_a_process(void* argument) {
  char command[128];
  snprintf(command, sizeof command, "python3 -c 'for step in range(int(3e7 * %s)): pass'",
           (const char*)argument);
  if (system(command) != 0) exit(3);
  send_to_all();
  return NULL;
}

static void* reads_for_ever(void* argument) {
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0 || read(ends[0], &byte, 1) < 0) exit(4);
  return argument;
}

// All ranks wait for the first, whose main thread waits for itself. Another of its threads sends when it has
// finished its work.
static void waits_beside(void* (*work)(void*), char* argument) {
  pthread_t thread;
  if (world.rank == 0) {
    pthread_create(&thread, NULL, work, argument);
    receive(world.size - 1);
    pthread_join(thread, NULL);
  } else {
    receive(0);
    if (world.rank == world.size - 1) {
      const int value = 1;
      MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
  }
}

// A word goes through a fifo from the first rank to the second, and back by MPI.
static void meets_in_a_fifo(const char* path) {
  const int value = 1;
  if (world.rank == 0) {
    mkfifo(path, 0600);
    MPI_Barrier(MPI_COMM_WORLD);
    const int fifo = open(path, O_WRONLY);
    if (write(fifo, "x", 1) != 1) exit(5);
    close(fifo);
    receive(1);
  } else {
    char byte = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const int fifo = open(path, O_RDONLY);
    if (read(fifo, &byte, 1) != 1) exit(6);
    close(fifo);
    MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  world = begin_threaded_program(&argc, &argv);
  if (argc != 3) return 2;
  if (strcmp(argv[1], "thread") == 0) waits_beside(computes, argv[2]);
  if (strcmp(argv[1], "process") == 0) waits_beside(sleeps_in_a_process, argv[2]);
  if (strcmp(argv[1], "busy-process") == 0) waits_beside(computes_in_a_process, argv[2]);
  if (strcmp(argv[1], "reader") == 0) waits_beside(reads_for_ever, argv[2]);
  if (strcmp(argv[1], "main-process") == 0) {
    if (world.rank == 0) sleeps_in_a_process(argv[2]);
    if (world.rank != 0) receive(0);
  }
  if (strcmp(argv[1], "fifo") == 0) meets_in_a_fifo(argv[2]);
  if (world.rank == 0) printf("done\n");
  return MPI_Finalize();
}
