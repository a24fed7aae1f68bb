// A conjugate-gradient solver on a 3D lattice with periodic boundaries, with the communication pattern of
// lattice QCD: each iteration exchanges six faces with the neighbours and computes two sums over all ranks.
//
// Solves (m^2 - laplace) x = b for a source at one site, and prints how the time of an iteration is spent.
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { edge = 16, face_sites = edge * edge, dimensions = 3, iterations = 20 };
static const double mass_squared = 0.1;

typedef double Field[edge + 2][edge + 2][edge + 2];  // with a ghost layer

static MPI_Comm torus;
static double faces_us, sums_us;

static double* site(Field field, int dimension, int plane, int i, int j) {
  if (dimension == 0) return &field[plane][i][j];
  return dimension == 1 ? &field[i][plane][j] : &field[i][j][plane];
}

static void copy_face(Field field, int dimension, int plane, double* face, int into_face) {
  for (int i = 0; i < edge; ++i) {
    for (int j = 0; j < edge; ++j) {
      double* value = site(field, dimension, plane, i + 1, j + 1);
      if (into_face) {
        face[i * edge + j] = *value;
      } else {
        *value = face[i * edge + j];
      }
    }
  }
}

static void exchange_faces(Field field) {
  static double out[2 * dimensions][face_sites];
  static double in[2 * dimensions][face_sites];
  MPI_Request requests[4 * dimensions];
  const double begin_s = MPI_Wtime();
  for (int side = 0; side < 2 * dimensions; ++side) {
    const int dimension = side / 2;
    const int step = side % 2 == 0 ? -1 : 1;
    int from = 0;
    int to = 0;
    MPI_Cart_shift(torus, dimension, step, &from, &to);
    copy_face(field, dimension, step < 0 ? 1 : edge, out[side], 1);
    MPI_Irecv(in[side], face_sites, MPI_DOUBLE, from, side, torus, &requests[side]);
    MPI_Isend(out[side], face_sites, MPI_DOUBLE, to, side, torus, &requests[2 * dimensions + side]);
  }
  MPI_Waitall(4 * dimensions, requests, MPI_STATUSES_IGNORE);
  for (int side = 0; side < 2 * dimensions; ++side) {
    copy_face(field, side / 2, side % 2 == 0 ? edge + 1 : 0, in[side], 0);
  }
  faces_us += (MPI_Wtime() - begin_s) * 1e6;
}

static double sum_over_ranks(double mine) {
  double all = 0;
  const double begin_s = MPI_Wtime();
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, torus);
  sums_us += (MPI_Wtime() - begin_s) * 1e6;
  return all;
}

static double dot(Field a, Field b) {
  double sum = 0;
  for (int x = 1; x <= edge; ++x)
    for (int y = 1; y <= edge; ++y)
      for (int z = 1; z <= edge; ++z) sum += a[x][y][z] * b[x][y][z];
  return sum_over_ranks(sum);
}

static void apply(Field result, Field p) {
  exchange_faces(p);
  for (int x = 1; x <= edge; ++x)
    for (int y = 1; y <= edge; ++y)
      for (int z = 1; z <= edge; ++z)
        result[x][y][z] = (mass_squared + 6) * p[x][y][z] - p[x - 1][y][z] - p[x + 1][y][z] - p[x][y - 1][z] -
                          p[x][y + 1][z] - p[x][y][z - 1] - p[x][y][z + 1];
}

// to = a * to + b * from
static void combine(Field to, double a, double b, Field from) {
  for (int x = 1; x <= edge; ++x)
    for (int y = 1; y <= edge; ++y)
      for (int z = 1; z <= edge; ++z) to[x][y][z] = a * to[x][y][z] + b * from[x][y][z];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0;
  int rank = 0;
  int dims[dimensions] = {0};
  const int periods[dimensions] = {1, 1, 1};
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, dimensions, dims);
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &torus);
  MPI_Comm_rank(torus, &rank);

  static Field x, r, p, ap;
  if (rank == 0) r[1][1][1] = 1;
  memcpy(p, r, sizeof(Field));
  MPI_Barrier(torus);
  const double begin_s = MPI_Wtime();
  double norm = dot(r, r);
  for (int i = 0; i < iterations; ++i) {
    apply(ap, p);
    const double alpha = norm / dot(p, ap);
    combine(x, 1, alpha, p);
    combine(r, 1, -alpha, ap);
    const double next = dot(r, r);
    combine(p, next / norm, 1, r);
    norm = next;
  }
  const double whole_us = (MPI_Wtime() - begin_s) * 1e6;
  if (rank == 0) {
    printf("residual %.6e; an iteration takes %.2f us: faces %.2f, sums %.2f\n", sqrt(norm),
           whole_us / iterations, faces_us / iterations, sums_us / iterations);
  }
  MPI_Finalize();
  return 0;
}
