// A read of a socket that has one byte waits for all that it wants: with MSG_WAITALL, or by SO_RCVLOWAT. A
// timer ends it after 10 ms.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static void handle(int number) {
  (void)number;
}

static void show(const char* name, int flags, int least) {
  int ends[2];
  char text[100];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || write(ends[1], "x", 1) != 1) return;
  setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
  const struct itimerval timer = {.it_value = {0, 10000}};
  const double began_s = MPI_Wtime();
  setitimer(ITIMER_REAL, &timer, NULL);
  const ssize_t bytes = recv(ends[0], text, sizeof text, flags);
  printf("%s: %d after %.3f ms\n", name, (int)bytes, 1e3 * (MPI_Wtime() - began_s));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const struct sigaction action = {.sa_handler = handle};
  sigaction(SIGALRM, &action, NULL);
  show("all", MSG_WAITALL, 1);
  show("least", 0, 50);
  MPI_Finalize();
  return 0;
}
