// halo: every process sends to both neighbours in each dimension of the grid, and then takes their messages,
// as the scripted workload of the same name (docs/reference/workloads.md).
#include "halo.h"

#include "layer.h"

enum { warm_up_rounds = 2, most_slots = 2 * most_dimensions };

// The slots are numbered by direction: 2 d towards the higher neighbour in dimension d, 2 d + 1 to the lower.
struct Neighbour {
  int slot;
  long bytes;
};

static struct Slot slots[most_slots];
static struct Neighbour neighbours[most_slots];

static int connect_neighbours(const struct Halo* halo) {
  const int self = layer_rank();
  int count = 0;
  int stride = 1;
  long max_bytes = 0;
  for (int d = 0; d < halo->dimensions; stride *= halo->grid[d++]) {
    const int extent = halo->grid[d];
    const int place = self / stride % extent;
    for (int side = 0; side < 2; ++side) {
      const int slot = 2 * d + side;
      const int next = side == 0 ? place + 1 : place - 1;
      const bool is_inside = next >= 0 && next < extent;
      slots[slot] = (struct Slot){.rank = -1};
      if (extent == 1 || (!is_inside && !halo->is_periodic)) continue;
      slots[slot].rank = self + ((next + extent) % extent - place) * stride;
      slots[slot].there = slot ^ 1;
      slots[slot].queue = -1;
      neighbours[count++] = (struct Neighbour){slot, halo->face_bytes[d]};
    }
    if (halo->face_bytes[d] > max_bytes) max_bytes = halo->face_bytes[d];
  }
  layer_connect(slots, 2 * halo->dimensions, max_bytes);
  return count;
}

double exchange_halos(const struct Halo* halo, long count) {
  const int neighbour_count = connect_neighbours(halo);
  double begin_us = 0;
  for (long i = 0; i < warm_up_rounds + count; ++i) {
    if (i == warm_up_rounds) begin_us = layer_time_us();
    for (int n = 0; n < neighbour_count; ++n) layer_send(neighbours[n].slot, neighbours[n].bytes, false);
    for (int n = 0; n < neighbour_count; ++n) layer_expect(neighbours[n].slot, neighbours[n].bytes);
    for (int n = 0; n < neighbour_count; ++n) layer_take(neighbours[n].slot);
  }
  return layer_time_us() - begin_us;
}
