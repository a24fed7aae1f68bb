// How the processes of a lattice program communicate: one file of this folder for each layer.
//
// The processes form a periodic grid of four dimensions; the rank runs fastest along the first. A direction
// is 2 mu towards the upper neighbour in dimension mu, 2 mu + 1 towards the lower one. Every failure ends the
// program with a message.
#ifndef APENET_LQCD_COMM_H
#define APENET_LQCD_COMM_H

#include <stddef.h>

enum { dimensions = 4, directions = 2 * dimensions };

// Sent to the neighbour in a direction, and received from it: as many bytes. None if `bytes` is 0.
struct CommFace {
  const void* out;
  void* in;
  size_t bytes;
};

// Joins the run; a call of all processes, like all below but comm_place(). Fails unless the grid has as many
// places as there are processes. Returns the rank.
int comm_open(const int grid[dimensions]);
void comm_place(int place[dimensions]);

// An exchange of faces that is declared once and repeated. Between start and wait the memory of the faces
// belongs to the layer.
struct CommHalo;
struct CommHalo* comm_declare_halo(const struct CommFace faces[directions]);
void comm_start(struct CommHalo* halo);
// Between start and wait, while the program computes: gives the layer a chance to answer other processes.
void comm_advance(struct CommHalo* halo);
void comm_wait(struct CommHalo* halo);
void comm_free_halo(struct CommHalo* halo);

// Over all processes, in place. The same bits on all of them.
void comm_sum(double* values, int count);
void comm_close(void);

#endif
