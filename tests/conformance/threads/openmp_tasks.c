// Tasks of OpenMP between the messages of a rank: threads that compute, and meet the rank's others nowhere.
#include <omp.h>

#include "../c/check.h"

static long count(int depth) {
  if (depth < 2) return 1;
  long left = 0, right = 0;
#pragma omp task shared(left) if (depth > 12)
  left = count(depth - 1);
#pragma omp task shared(right) if (depth > 12)
  right = count(depth - 2);
#pragma omp taskwait
  return left + right;
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  for (int round = 0; round < 5; ++round) {
    long own = 0, sum = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
    own = count(15 + (world.rank + round) % 3);
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: %ld of %ld at %.9f\n", world.rank, own, sum, MPI_Wtime());
  }
  return end_program(world);
}
