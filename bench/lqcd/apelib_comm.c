// The library of the APENet machines: faces are published to the card once, and travel without a copy.
#include <apelib.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm.h"
#include "support.h"

struct CommHalo {
  ape_halo halo;
  int is_done;
};

static void check(int code, const char* call) {
  if (code != APE_OK) fail("%s: %s: %s", call, ape_strerror(code), ape_last_error());
}

// The torus of ranks gets the shape of the grid, so that its directions are those of the lattice.
int comm_open(const int grid[dimensions]) {
  char shape[64];
  int rank = 0;
  snprintf(shape, sizeof shape, "%dx%dx%dx%d", grid[0], grid[1], grid[2], grid[3]);
  if (setenv("APELIB_DIMS", shape, 1) != 0) fail("APELIB_DIMS = %s: no memory", shape);
  check(ape_init(), "ape_init");
  check(ape_rank(&rank), "ape_rank");
  return rank;
}

void comm_place(int place[dimensions]) {
  int rank = 0;
  int coordinates[APE_MAX_DIMS];
  check(ape_rank(&rank), "ape_rank");
  check(ape_coords(rank, coordinates), "ape_coords");
  for (int mu = 0; mu < dimensions; ++mu) place[mu] = coordinates[mu];
}

struct CommHalo* comm_declare_halo(const struct CommFace faces[directions]) {
  struct CommHalo* halo = allocate(1, sizeof *halo);
  check(ape_halo_create(&halo->halo), "ape_halo_create");
  for (int direction = 0; direction < directions; ++direction) {
    const struct CommFace* face = &faces[direction];
    if (face->bytes > 0)
      check(ape_halo_face(halo->halo, direction, face->out, face->in, face->bytes), "ape_halo_face");
  }
  return halo;
}

void comm_start(struct CommHalo* halo) {
  halo->is_done = 0;
  check(ape_halo_start(halo->halo), "ape_halo_start");
}

// Only faces above 64 KiB need an answer.
void comm_advance(struct CommHalo* halo) {
  if (!halo->is_done) check(ape_halo_test(halo->halo, &halo->is_done), "ape_halo_test");
}

void comm_wait(struct CommHalo* halo) {
  if (!halo->is_done) check(ape_halo_wait(halo->halo), "ape_halo_wait");
}

void comm_free_halo(struct CommHalo* halo) {
  check(ape_halo_free(&halo->halo), "ape_halo_free");
  free(halo);
}

void comm_sum(double* values, int count) {
  check(ape_sum(values, (size_t)count, APE_DOUBLE), "ape_sum");
}

void comm_close(void) {
  check(ape_finalize(), "ape_finalize");
}
