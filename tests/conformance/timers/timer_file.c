// Waits four times without a limit for a timer's file, which goes on to run until the process ends.
#include <mpi.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <unistd.h>

int main(int count, char** words) {
  MPI_Init(&count, &words);
  const double began = MPI_Wtime();
  const int file = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec each = {{0, 50000000}, {0, 50000000}};
  timerfd_settime(file, 0, &each, NULL);
  unsigned long ends = 0;
  for (int i = 0; i < 4; ++i) {
    struct pollfd wait = {.fd = file, .events = POLLIN};
    uint64_t read_now = 0;
    if (poll(&wait, 1, -1) != 1 || read(file, &read_now, sizeof read_now) != sizeof read_now) return 1;
    ends += read_now;
  }
  printf("%lu ends in %.1f ms\n", ends, (MPI_Wtime() - began) * 1e3);
  MPI_Finalize();
  return 0;
}
