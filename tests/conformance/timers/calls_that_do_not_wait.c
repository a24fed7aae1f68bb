// A timer of ten microseconds beside calls that do not wait: they take no virtual time, however long the host
// takes for them, so the timer does not ring before the program sleeps.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t rung;

static void on_alarm(int number) {
  (void)number;
  ++rung;
}

#define EACH(call)                                            \
  do {                                                        \
    for (int i = 0; i < 300 && rung == 0; ++i) (void)!(call); \
    if (rung != 0) printf("rings in %s\n", #call);            \
    rung = 0;                                                 \
    setitimer(ITIMER_REAL, &soon, NULL);                      \
  } while (0)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const struct itimerval soon = {.it_value = {.tv_usec = 10}};
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  int ends[2];
  char byte = 0;
  signal(SIGALRM, on_alarm);
  if (file < 0 || pipe(ends) != 0) return 2;
  setitimer(ITIMER_REAL, &soon, NULL);
  EACH(fcntl(file, F_GETFD));
  EACH(close(open(argv[1], O_RDONLY)));
  EACH(write(file, "x", 1));
  EACH(pread(file, &byte, 1, 0));
  EACH(lseek(file, 0, SEEK_SET) == 0 && read(file, &byte, 1));
  EACH(write(ends[1], "x", 1));
  EACH(read(ends[0], &byte, 1));
  EACH(flock(file, LOCK_EX | LOCK_NB));
  EACH(lockf(file, F_TLOCK, 0));
  EACH(waitpid(-1, NULL, WNOHANG));
  usleep(1000);
  printf("rung %d\n", (int)rung);
  MPI_Finalize();
  return 0;
}
