/* Checks without a sleep, until a child that sleeps for 50 ms has written and ended. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int has_come(const char* how, pid_t child, int file) {
  char byte = 0;
  siginfo_t end = {0};
  struct pollfd one = {.fd = file, .events = POLLIN, .revents = 0};
  if (strcmp(how, "waitpid") == 0) return waitpid(child, NULL, WNOHANG) != 0;
  if (strcmp(how, "waitid") == 0)
    return waitid(P_PID, (id_t)child, &end, WEXITED | WNOHANG) != 0 || end.si_pid != 0;
  if (strcmp(how, "read") == 0) return read(file, &byte, 1) == 1 || errno != EAGAIN;
  return poll(&one, 1, 0) != 0;
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  for (int i = 1; i < count; ++i) {
    int files[2];
    if (pipe(files) != 0 || fcntl(files[0], F_SETFL, O_NONBLOCK) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    const double begin_s = MPI_Wtime();
    const pid_t child = fork();
    if (child == 0) {
      usleep(50000);
      _exit(write(files[1], "x", 1) != 1);
    }
    while (!has_come(arguments[i], child, files[0])) continue;
    printf("%s: %.1f ms\n", arguments[i], 1e3 * (MPI_Wtime() - begin_s));
    waitpid(child, NULL, 0);
    close(files[0]);
    close(files[1]);
  }
  MPI_Finalize();
  return 0;
}
