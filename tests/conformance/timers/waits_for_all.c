// A read of a socket that has one byte waits for all that it wants: with MSG_WAITALL, by SO_RCVLOWAT, or as
// the first of two messages. A timer ends it after 10 ms, and also fopen() of a fifo without a writer.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

static void handle(int number) {
  (void)number;
}

static double began_s;

static void begin(void) {
  const struct itimerval timer = {.it_value = {0, 10000}};
  began_s = MPI_Wtime();
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void end(const char* name, int result) {
  printf("%s: %d after %.3f ms\n", name, result, 1e3 * (MPI_Wtime() - began_s));
}

static void show(const char* name, int flags, int least) {
  int ends[2];
  char text[2][100];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || write(ends[1], "x", 1) != 1) return;
  setsockopt(ends[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
  struct iovec parts[] = {{text[0], sizeof text[0]}, {text[1], sizeof text[1]}};
  struct mmsghdr messages[] = {{{.msg_iov = &parts[0], .msg_iovlen = 1}, 0},
                               {{.msg_iov = &parts[1], .msg_iovlen = 1}, 0}};
  begin();
  if (least == 0)
    end(name, recvmmsg(ends[0], messages, 2, flags, NULL));
  else
    end(name, (int)recv(ends[0], text[0], sizeof text[0], flags));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const struct sigaction action = {.sa_handler = handle};
  sigaction(SIGALRM, &action, NULL);
  show("all", MSG_WAITALL, 1);
  show("least", 0, 50);
  show("two", 0, 0);
  if (mkfifo(argv[1], 0600) != 0) return 1;
  begin();
  FILE* const file = fopen(argv[1], "r");
  end("opens", file != NULL);
  MPI_Finalize();
  return 0;
}
