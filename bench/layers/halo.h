// The halo exchange of all processes at one layer of software over the card.
#ifndef APENET_LAYER_HALO_H
#define APENET_LAYER_HALO_H

#include <stdbool.h>

enum { most_dimensions = 3 };

// Ranks number the grid's places with the first dimension fastest, as nodes of a torus are numbered.
struct Halo {
  int dimensions;
  int grid[most_dimensions];
  long face_bytes[most_dimensions];  // message size along each dimension
  bool is_periodic;
};

// Microseconds of `count` exchanges at this process, after some for warm-up.
double exchange_halos(const struct Halo* halo, long count);

#endif
