// Rank 0 keeps a lock on rank 1's part of a window while it waits for rank 1, which requests the same lock.
#include <mpi.h>

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank, value = 7, part = 0;
  MPI_Win window;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_create(&part, sizeof part, sizeof part, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
    MPI_Win_flush(1, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock(1, window);
  MPI_Win_free(&window);
  MPI_Finalize();
}
