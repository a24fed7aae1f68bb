/* Messages beside the housekeeping thread of own_create.c, and a thread of the program's own. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

void begin_housekeeping(void);
void take_lock(void);

static void* add(void* number) {
  ++*(int*)number;
  return NULL;
}

int main(int argc, char** argv) {
  int rank;
  int added = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  begin_housekeeping();
  pthread_t thread;
  pthread_create(&thread, NULL, add, &added);
  pthread_join(thread, NULL);
  for (int i = 0; i < 200; ++i) {
    take_lock();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) printf("%d added, %s\n", added, MPI_Wtime() < 1 ? "in time" : "late");
  MPI_Finalize();
  return 0;
}
