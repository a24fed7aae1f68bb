// The part of a periodic lattice that one process holds: its sites by parity, their neighbours, and its
// faces.
#ifndef APENET_LQCD_LATTICE_H
#define APENET_LQCD_LATTICE_H

#include <stdbool.h>

#include "comm.h"

// All extents of the part are even, so that the parity of a site is that of its place in the part, and both
// parities have half of the sites. A site's index within its parity is half its lexicographic number, the
// first coordinate fastest.
struct Lattice {
  int whole[dimensions];
  int grid[dimensions];
  int extent[dimensions];  // extents of the part
  int origin[dimensions];  // origin of the part in the whole lattice
  int rank;
  long half;                   // sites of one parity
  long face_half[dimensions];  // sites of one parity on a face; 0 where the grid does not divide the lattice
  // Without fields: the messages, the sums and the declared operations are those of a computation, and no
  // number is computed. The tables below do not exist then.
  bool is_pattern;
  // By parity of the site and direction: the neighbour's index within the other parity, or -1 if another
  // process holds it. The sites of each face, in an order that both processes share.
  int* neighbour[2][directions];
  int* face[2][directions];
};

// Joins the run. Refuses a grid that does not divide the lattice into parts of even extents.
void lattice_open(struct Lattice* lattice, const int whole[dimensions], const int grid[dimensions],
                  bool is_pattern);
void lattice_close(struct Lattice* lattice);

// A site's coordinates in the whole lattice, and its lexicographic number there.
void lattice_site(const struct Lattice* lattice, int parity, long index, int coordinates[dimensions]);
long lattice_number(const struct Lattice* lattice, const int coordinates[dimensions]);

#endif
