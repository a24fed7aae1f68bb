// Ranks of a node wait for each other by spinning on a flag in a shared window, in the way that the argument
// names: `silent`, without any call; `answered`, without any call while the other needs virtual time;
// `for-ever`, for a flag that nobody sets; `dies`, while the other is killed.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* mode = argv[1];
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int* base = NULL;
  MPI_Win window;
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  MPI_Aint bytes = 0;
  int unit = 0;
  int* flags = NULL;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &flags);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  MPI_Barrier(MPI_COMM_WORLD);
  volatile int* flag = flags;
  if (strcmp(mode, "for-ever") == 0) {
    while (*flag == 0) MPI_Win_sync(window);
  } else if (strcmp(mode, "dies") == 0) {
    if (rank == 1) raise(SIGKILL);
    while (*flag == 0) MPI_Win_sync(window);
  } else if (rank == 0) {
    while (*flag == 0) continue;  // rank 1 gets a grant when this one waits
    printf("found %d\n", *flag);
  } else {
    int token = 1;
    if (strcmp(mode, "answered") == 0) {
      MPI_Sendrecv_replace(&token, 1, MPI_INT, 1, 0, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    *flag = token;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
