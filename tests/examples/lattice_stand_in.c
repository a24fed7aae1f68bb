// Stands in for SOMBRERO in the commands of docs/tutorial-lqcd.md: takes the same options, divides a lattice,
// and repeats a hop (work on each site of the rank, then a halo in each divided dimension) and a global sum.
//
//   sombrero2 -l 16x16x16x16 [-p 2x2x1x1] -v result
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { dimensions = 4, site_numbers = 24, hops = 12 };

static void parse(const char* text, int extents[dimensions]) {
  if (sscanf(text, "%dx%dx%dx%d", &extents[0], &extents[1], &extents[2], &extents[3]) != dimensions) exit(2);
}

static double work(double* field, int sites) {
  double sum = 0;
  for (int i = 0; i < sites * site_numbers; ++i) {
    field[i] = field[i] * 0.999 + 1e-3;
    sum += field[i] * field[i];
  }
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks;
  int whole[dimensions] = {0};
  int grid[dimensions] = {0};
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "-l") == 0) parse(argv[i + 1], whole);
    if (strcmp(argv[i], "-p") == 0) parse(argv[i + 1], grid);
  }
  MPI_Dims_create(ranks, dimensions, grid);
  const int periods[dimensions] = {1, 1, 1, 1};
  MPI_Comm torus;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, grid, periods, 0, &torus);
  int sites = 1;
  for (int d = 0; d < dimensions; ++d) sites *= whole[d] / grid[d];
  double* field = calloc((size_t)sites * site_numbers, sizeof(double));
  double* halo = calloc((size_t)sites * site_numbers, sizeof(double));
  double total = 0;
  const double begin = MPI_Wtime();
  for (int hop = 0; hop < hops; ++hop) {
    double sum = work(field, sites);
    for (int d = 0; d < dimensions; ++d) {
      if (grid[d] == 1) continue;
      int from;
      int to;
      const int count = sites / (whole[d] / grid[d]) * site_numbers;
      MPI_Cart_shift(torus, d, 1, &from, &to);
      MPI_Sendrecv(field, count, MPI_DOUBLE, to, 0, halo, count, MPI_DOUBLE, from, 0, torus,
                   MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, torus);
  }
  int rank;
  MPI_Comm_rank(torus, &rank);
  if (rank == 0) printf("sum %.6e in %.9f s\n", total, MPI_Wtime() - begin);
  free(field);
  free(halo);
  MPI_Finalize();
  return 0;
}
