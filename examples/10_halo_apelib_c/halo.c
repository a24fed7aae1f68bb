// Relaxation of a field on a periodic lattice, 8^3 sites on each rank: a halo exchange of six faces in each
// step, and a global sum at the end.
#include <apelib.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { L = 8, STEPS = 20, FACES = 6 };

static double field[L + 2][L + 2][L + 2];  // with the neighbours' sites around
static double out[FACES][L][L];
static double in[FACES][L][L];

static void check(int code) {
  if (code == APE_OK) return;
  fprintf(stderr, "halo: %s\n", ape_last_error());
  exit(1);
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// A site of the face in this direction: `depth` 0 is the first layer inside, 1 the neighbours' layer.
static double* site(int direction, int depth, int a, int b) {
  const int layer = direction % 2 == 0 ? L + depth : 1 - depth;
  if (direction / 2 == 0) return &field[layer][a][b];
  if (direction / 2 == 1) return &field[a][layer][b];
  return &field[a][b][layer];
}

static void copy_faces(double faces[FACES][L][L], int depth, int is_unpacked) {
  for (int d = 0; d < FACES; ++d)
    for (int a = 0; a < L; ++a)
      for (int b = 0; b < L; ++b) {
        double* at = site(d, depth, a + 1, b + 1);
        if (is_unpacked) *at = faces[d][a][b];
        if (!is_unpacked) faces[d][a][b] = *at;
      }
}

static void relax(void) {
  static double next[L + 2][L + 2][L + 2];
  for (int x = 1; x <= L; ++x)
    for (int y = 1; y <= L; ++y)
      for (int z = 1; z <= L; ++z)
        next[x][y][z] = field[x][y][z] + 0.1 * (field[x + 1][y][z] + field[x - 1][y][z] + field[x][y + 1][z] +
                                                field[x][y - 1][z] + field[x][y][z + 1] + field[x][y][z - 1] -
                                                6 * field[x][y][z]);
  for (int x = 1; x <= L; ++x)
    for (int y = 1; y <= L; ++y)
      for (int z = 1; z <= L; ++z) field[x][y][z] = next[x][y][z];
}

int main(void) {
  int rank = 0, size = 0, count = 0, dims[APE_MAX_DIMS], here[APE_MAX_DIMS];
  check(ape_init());
  check(ape_rank(&rank));
  check(ape_size(&size));
  check(ape_dims(&count, dims));
  check(ape_coords(rank, here));

  ape_halo halo = APE_NO_HALO;
  check(ape_halo_create(&halo));
  for (int d = 0; d < FACES; ++d) check(ape_halo_face(halo, d, out[d], in[d], sizeof out[d]));

  for (int x = 1; x <= L; ++x)
    for (int y = 1; y <= L; ++y)
      for (int z = 1; z <= L; ++z)
        field[x][y][z] =
            (7 * (here[0] * L + x - 1) + 13 * (here[1] * L + y - 1) + 29 * (here[2] * L + z - 1)) % 17;

  double exchange_us = 0;
  for (int step = 0; step < STEPS; ++step) {
    copy_faces(out, 0, 0);
    const double start = now_us();
    check(ape_halo_start(halo));
    check(ape_halo_wait(halo));
    exchange_us += now_us() - start;
    copy_faces(in, 1, 1);
    relax();
  }

  double action = 0;
  for (int x = 1; x <= L; ++x)
    for (int y = 1; y <= L; ++y)
      for (int z = 1; z <= L; ++z) action += field[x][y][z] * field[x][y][z];
  check(ape_sum(&action, 1, APE_DOUBLE));
  check(ape_max(&exchange_us, 1, APE_DOUBLE));
  if (rank == 0) {
    printf("%d ranks, a torus of %dx%dx%d\n", size, dims[0], dims[1], dims[2]);
    printf("sum of squares %.6f\n", action);
    printf("one exchange of six faces of %zu bytes: %.2f us\n", sizeof out[0], exchange_us / STEPS);
  }
  check(ape_halo_free(&halo));
  check(ape_finalize());
  return 0;
}
