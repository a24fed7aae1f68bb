#include "lattice.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static void place_of(const int extent[dimensions], long number, int place[dimensions]) {
  for (int mu = 0; mu < dimensions; ++mu) {
    place[mu] = (int)(number % extent[mu]);
    number /= extent[mu];
  }
}

static long number_of(const int extent[dimensions], const int place[dimensions]) {
  long number = 0;
  for (int mu = dimensions; mu-- > 0;) number = number * extent[mu] + place[mu];
  return number;
}

static int parity_of(const int place[dimensions]) {
  return (place[0] + place[1] + place[2] + place[3]) % 2;
}

static void make_tables(struct Lattice* lattice) {
  long listed[2][directions] = {{0}};
  for (int parity = 0; parity < 2; ++parity) {
    for (int direction = 0; direction < directions; ++direction) {
      lattice->neighbour[parity][direction] = allocate((size_t)lattice->half, sizeof(int));
      lattice->face[parity][direction] = allocate((size_t)lattice->face_half[direction / 2], sizeof(int));
    }
  }
  for (long number = 0; number < 2 * lattice->half; ++number) {
    int place[dimensions];
    place_of(lattice->extent, number, place);
    const int parity = parity_of(place);
    const long index = number / 2;
    for (int direction = 0; direction < directions; ++direction) {
      const int mu = direction / 2;
      const int extent = lattice->extent[mu];
      const bool is_last = place[mu] == (direction % 2 == 0 ? extent - 1 : 0);
      int there[dimensions];
      memcpy(there, place, sizeof there);
      there[mu] = (place[mu] + (direction % 2 == 0 ? 1 : extent - 1)) % extent;
      int* neighbour = &lattice->neighbour[parity][direction][index];
      *neighbour = (int)(number_of(lattice->extent, there) / 2);
      if (!is_last || lattice->grid[mu] == 1) continue;
      *neighbour = -1;
      lattice->face[parity][direction][listed[parity][direction]++] = (int)index;
    }
  }
}

void lattice_open(struct Lattice* lattice, const int whole[dimensions], const int grid[dimensions],
                  bool is_pattern) {
  char text[64];
  double sites = 1;
  *lattice = (struct Lattice){.half = 1, .is_pattern = is_pattern};
  snprintf(text, sizeof text, "%dx%dx%dx%d", whole[0], whole[1], whole[2], whole[3]);
  for (int mu = 0; mu < dimensions; ++mu) {
    lattice->whole[mu] = whole[mu];
    lattice->grid[mu] = grid[mu];
    if (whole[mu] % (2 * grid[mu]) != 0) {
      char expected[64];
      snprintf(expected, sizeof expected, "an even part of dimension %d for each of %d processes", mu,
               grid[mu]);
      refuse("--lattice", text, expected);
    }
    lattice->extent[mu] = whole[mu] / grid[mu];
    lattice->half *= lattice->extent[mu];
    sites *= lattice->extent[mu];
  }
  if (sites > INT_MAX) refuse("--lattice", text, "at most 2147483647 sites for a process");
  lattice->half /= 2;
  for (int mu = 0; mu < dimensions; ++mu)
    lattice->face_half[mu] = grid[mu] == 1 ? 0 : lattice->half / lattice->extent[mu];
  lattice->rank = comm_open(grid);
  comm_place(lattice->origin);
  for (int mu = 0; mu < dimensions; ++mu) lattice->origin[mu] *= lattice->extent[mu];
  if (!is_pattern) make_tables(lattice);
}

void lattice_close(struct Lattice* lattice) {
  for (int parity = 0; parity < 2; ++parity) {
    for (int direction = 0; direction < directions; ++direction) {
      free(lattice->neighbour[parity][direction]);
      free(lattice->face[parity][direction]);
    }
  }
  comm_close();
}

void lattice_site(const struct Lattice* lattice, int parity, long index, int coordinates[dimensions]) {
  place_of(lattice->extent, 2 * index, coordinates);
  if (parity_of(coordinates) != parity) ++coordinates[0];
  for (int mu = 0; mu < dimensions; ++mu) coordinates[mu] += lattice->origin[mu];
}

long lattice_number(const struct Lattice* lattice, const int coordinates[dimensions]) {
  return number_of(lattice->whole, coordinates);
}
