// Rank 1 keeps a lock in memory that the ranks share, and takes it again; the others wait for it.
#include <mpi.h>
#include <pthread.h>

int main(int argc, char** argv) {
  pthread_mutex_t* mutex = NULL;
  MPI_Win window;
  MPI_Aint bytes = 0;
  int rank = 0, unit = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_allocate_shared(rank == 1 ? 4096 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void*)&mutex, &window);
  MPI_Win_shared_query(window, 1, &bytes, &unit, (void*)&mutex);
  if (rank == 1) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutex_lock(mutex);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  pthread_mutex_lock(mutex);
  MPI_Finalize();
  return 0;
}
