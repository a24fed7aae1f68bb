// Computes a known amount between its calls, and counts it itself: recordings of it repeat exactly.
//   regions SITES loop        a loop of two regions; rank 0 works longer in one of them
//   regions SITES timed       works until a millisecond has passed
//   regions SITES other       a region that the first form does not have
//   regions SITES operator    as the first, and works in an operator of its own, inside MPI
//   regions SITES many        5000 passes of one region
//   regions SITES apart       rank 2 computes and prints while rank 0 sends to rank 1
//   regions SITES uneven      as the first, but every other pass takes three times as long
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t worked_ns;
static int64_t reads;

// Each read of the clock takes a microsecond, as far as this clock says.
int64_t apenet_cpu_time_ps(void) {
  return 1000 * worked_ns + 1000000 * ++reads;
}

static void work(int64_t ns) {
  worked_ns += ns;
}

static volatile double sum_of_host_work;

// Takes some ten milliseconds of the host, and no time of this clock.
static void work_on_host(void) {
  for (int i = 0; i < 20000000; ++i) sum_of_host_work += i;
}

static void add_slowly(void* in, void* sum, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((double*)sum)[i] += ((double*)in)[i];
  work(1000000);
}

static double add(double value, MPI_Op operator) {
  double sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, operator, MPI_COMM_WORLD);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int64_t sites = atoi(argv[1]) / ranks;
  const char* form = argv[2];
  const double begin = MPI_Wtime();
  int passes = 0;
  MPI_Op operator= MPI_SUM;
  if (strcmp(form, "operator") == 0) MPI_Op_create(add_slowly, 1, &operator);
  if (strcmp(form, "timed") == 0) {
    for (; MPI_Wtime() - begin < 1e-3; ++passes) work(10 * sites);
  } else if (strcmp(form, "many") == 0) {
    for (; passes < 5000; ++passes) {
      work(10 * sites);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  } else if (strcmp(form, "apart") == 0) {
    for (double value = 0; passes < 3; ++passes) {
      if (rank == 2) {
        work(20000000);
        work_on_host();
        printf("computed %d\n", passes);
      } else if (rank == 0) {
        work(500000);
        MPI_Send(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
      } else {
        MPI_Recv(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
  } else if (strcmp(form, "other") == 0) {
    work(500);
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    for (; passes < 20; ++passes) {
      const int64_t times = strcmp(form, "uneven") == 0 && passes % 2 == 1 ? 3 : 1;
      work(times * (100 + 3 * sites));
      add(1, operator);
      work(7 * sites + (rank == 0 ? 5000 : 0));
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  const double seconds = MPI_Wtime() - begin;
  if (rank == 0) printf("%d passes in %.6f us\n", passes, 1e6 * seconds);
  MPI_Finalize();
  return 0;
}
