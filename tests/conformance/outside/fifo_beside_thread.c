// Polls a fifo, which others may write, for 20 ms beside a thread that sleeps for 15 ms. Prints when that
// ends, in ms.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void* sleep_once(void* unused) {
  usleep(15000);
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (mkfifo(argv[1], 0600) != 0) return 1;
  struct pollfd file = {.fd = open(argv[1], O_RDWR), .events = POLLIN};
  pthread_create(&thread, NULL, sleep_once, NULL);
  const double began_s = MPI_Wtime();
  const int result = poll(&file, 1, 20);
  printf("%d %.1f\n", result, 1e3 * (MPI_Wtime() - began_s));
  pthread_join(thread, NULL);
  MPI_Finalize();
  return 0;
}
