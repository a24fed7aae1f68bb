// hostile_names WHAT NAME FOLDER: waits for ever, and what it waits for has this name.
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[4096];

int main(int argc, char** argv) {
  const char* const what = argv[1];
  const char* const name = argv[2];
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s/%d%s", argv[3], rank, name);
  char byte;
  if (strcmp(what, "fifo") == 0) {
    mkfifo(path, 0600);
    read(open(path, O_RDWR), &byte, 1);
  } else if (strcmp(what, "open") == 0) {
    mkfifo(path, 0600);
    MPI_Barrier(MPI_COMM_WORLD);
    path[strlen(argv[3]) + 1] = '0';
    open(path, O_RDONLY);
  } else if (strcmp(what, "lock") == 0) {
    const int first = open(path, O_RDWR | O_CREAT, 0600), second = open(path, O_RDWR);
    flock(first, LOCK_EX);
    flock(second, LOCK_EX);
  } else if (strcmp(what, "process") == 0) {
    int ends[2];
    pipe(ends);
    if (fork() == 0) {
      prctl(PR_SET_NAME, name);
      read(ends[0], &byte, 1);
    }
    wait(NULL);
  } else if (strcmp(what, "communicator") == 0) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_name(copy, name);
    MPI_Recv(&byte, 1, MPI_BYTE, 1 - rank, 7, copy, MPI_STATUS_IGNORE);
  } else if (strcmp(what, "window") == 0) {
    MPI_Win window;
    MPI_Win_create(&byte, 1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_name(window, name);
    if (rank == 0)
      MPI_Win_fence(0, window);
    else
      MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(what, "abort") == 0) {
    _exit(3);
  }
  MPI_Finalize();
  return 0;
}
