#include "wilson.h"

#include <stdlib.h>
#include <string.h>

#include "apenet_compute.h"
#include "support.h"

enum { project_flops = 12, multiply_flops = 2 * 66, add_flops = 24 };

Spinor* field_open(const struct Lattice* lattice) {
  return lattice->is_pattern ? NULL : allocate((size_t)lattice->half, sizeof(Spinor));
}

void wilson_open(struct Wilson* wilson, const struct Lattice* lattice, const struct Gauge* gauge,
                 double kappa) {
  struct CommFace faces[directions];
  *wilson = (struct Wilson){.lattice = lattice, .gauge = gauge, .kappa = kappa};
  for (int direction = 0; direction < directions; ++direction) {
    const size_t count = (size_t)lattice->face_half[direction / 2];
    wilson->out[direction] = allocate(count, sizeof(HalfSpinor));
    wilson->in[direction] = allocate(count, sizeof(HalfSpinor));
    faces[direction] =
        (struct CommFace){wilson->out[direction], wilson->in[direction], count * sizeof(HalfSpinor)};
  }
  wilson->halo = comm_declare_halo(faces);
}

void wilson_close(struct Wilson* wilson) {
  comm_free_halo(wilson->halo);
  for (int direction = 0; direction < directions; ++direction) {
    free(wilson->out[direction]);
    free(wilson->in[direction]);
  }
}

// (1 + sign gamma_mu) U_mu psi is computed from its upper spins: U acts on colour, gamma on spin.
LQCD_INLINE HalfSpinor multiplied(const Matrix* u, HalfSpinor h) {
  return (HalfSpinor){{times(u, &h.s[0]), times(u, &h.s[1])}};
}

LQCD_INLINE HalfSpinor adjoint_multiplied(const Matrix* u, HalfSpinor h) {
  return (HalfSpinor){{adjoint_times(u, &h.s[0]), adjoint_times(u, &h.s[1])}};
}

// `sign` is that of the hop from the lower neighbour: 1 for H, -1 for its adjoint. The upper one has the
// other.
static void pack_faces(const struct Wilson* wilson, const Spinor* in, int from, int sign) {
  const struct Lattice* lattice = wilson->lattice;
  const Matrix* links = wilson->gauge->links[from];
  for (int mu = 0; mu < dimensions; ++mu) {
    const int* top = lattice->face[from][2 * mu];
    const int* bottom = lattice->face[from][2 * mu + 1];
    for (long k = 0; k < lattice->face_half[mu]; ++k) {
      const Matrix* u = &links[(long)top[k] * dimensions + mu];
      wilson->out[2 * mu][k] = adjoint_multiplied(u, projected(&in[top[k]], mu, sign));
      wilson->out[2 * mu + 1][k] = projected(&in[bottom[k]], mu, -sign);
    }
  }
}

struct Range {
  long begin, end;
};

// The hops whose both ends are here. `sign` and the unrolled dimension are constants where this is inlined.
LQCD_INLINE void hop_inside(const struct Wilson* wilson, Spinor* out, const Spinor* in, int parity, int sign,
                            struct Range sites) {
  const struct Lattice* lattice = wilson->lattice;
  const Matrix* here = wilson->gauge->links[parity];
  const Matrix* there = wilson->gauge->links[1 - parity];
  for (long index = sites.begin; index < sites.end; ++index) {
    Spinor sum = {0};
#pragma GCC unroll 4
    for (int mu = 0; mu < dimensions; ++mu) {
      const long up = lattice->neighbour[parity][2 * mu][index];
      const long down = lattice->neighbour[parity][2 * mu + 1][index];
      if (up >= 0) {
        const HalfSpinor h = multiplied(&here[index * dimensions + mu], projected(&in[up], mu, -sign));
        add_reconstructed(&sum, &h, mu, -sign);
      }
      if (down >= 0) {
        const HalfSpinor h =
            adjoint_multiplied(&there[down * dimensions + mu], projected(&in[down], mu, sign));
        add_reconstructed(&sum, &h, mu, sign);
      }
    }
    out[index] = sum;
  }
}

static void add_faces(const struct Wilson* wilson, Spinor* out, int parity, int sign) {
  const struct Lattice* lattice = wilson->lattice;
  const Matrix* links = wilson->gauge->links[parity];
  for (int mu = 0; mu < dimensions; ++mu) {
    const int* top = lattice->face[parity][2 * mu];
    const int* bottom = lattice->face[parity][2 * mu + 1];
    for (long k = 0; k < lattice->face_half[mu]; ++k) {
      const HalfSpinor h = multiplied(&links[(long)top[k] * dimensions + mu], wilson->in[2 * mu][k]);
      add_reconstructed(&out[top[k]], &h, mu, -sign);
      add_reconstructed(&out[bottom[k]], &wilson->in[2 * mu + 1][k], mu, sign);
    }
  }
}

// Operations before the faces leave, while they travel, and after they have come; 1320 for each site in all:
// the sender multiplies what goes up, the receiver what comes from above.
struct HopFlops {
  double before, meanwhile, after;
};

static struct HopFlops count_flops(const struct Lattice* lattice) {
  double sites = 0;  // sites of the faces in one direction
  for (int mu = 0; mu < dimensions; ++mu) sites += (double)lattice->face_half[mu];
  const double before = sites * (2 * project_flops + multiply_flops);
  const double after = sites * (multiply_flops + 2 * add_flops);
  return (struct HopFlops){before, (double)lattice->half * hop_flops - before - after, after};
}

// The inside is computed in slices, so that a layer whose messages need the processor to answer (a
// rendezvous) gets it while they are under way.
enum { slices = 8 };

void wilson_hop(const struct Wilson* wilson, Spinor* out, const Spinor* in, int parity, enum Form form) {
  const struct HopFlops flops = count_flops(wilson->lattice);
  const bool computes = !wilson->lattice->is_pattern;
  const int sign = form == form_plain ? 1 : -1;
  if (computes) pack_faces(wilson, in, 1 - parity, sign);
  ape_compute_flops(flops.before);
  comm_start(wilson->halo);
  for (int slice = 0; slice < slices; ++slice) {
    const long half = wilson->lattice->half;
    const struct Range sites = {half * slice / slices, half * (slice + 1) / slices};
    if (slice > 0) comm_advance(wilson->halo);
    if (computes && sign > 0) hop_inside(wilson, out, in, parity, 1, sites);
    if (computes && sign < 0) hop_inside(wilson, out, in, parity, -1, sites);
    ape_compute_flops(flops.meanwhile / slices);
  }
  comm_wait(wilson->halo);
  if (computes) add_faces(wilson, out, parity, sign);
  ape_compute_flops(flops.after);
}

void wilson_even(const struct Wilson* wilson, Spinor* out, const Spinor* in, Spinor* odd, enum Form form) {
  wilson_hop(wilson, odd, in, 1, form);
  wilson_hop(wilson, out, odd, 0, form);
  field_scale_add(wilson->lattice, out, -wilson->kappa * wilson->kappa, in);
}

static void count_field_flops(const struct Lattice* lattice) {
  ape_compute_flops(2.0 * spinor_reals * (double)lattice->half);
}

static real* numbers(Spinor* x) {
  return &x->s[0].c[0].re;
}

static const real* numbers_of(const Spinor* x) {
  return &x->s[0].c[0].re;
}

void field_add(const struct Lattice* lattice, Spinor* y, double a, const Spinor* x) {
  for (long index = 0; !lattice->is_pattern && index < lattice->half; ++index) {
    for (int i = 0; i < spinor_reals; ++i) numbers(&y[index])[i] += (real)a * numbers_of(&x[index])[i];
  }
  count_field_flops(lattice);
}

void field_scale_add(const struct Lattice* lattice, Spinor* y, double a, const Spinor* x) {
  for (long index = 0; !lattice->is_pattern && index < lattice->half; ++index) {
    for (int i = 0; i < spinor_reals; ++i)
      numbers(&y[index])[i] = numbers_of(&x[index])[i] + (real)a * numbers(&y[index])[i];
  }
  count_field_flops(lattice);
}

// Added in double precision.
double field_norm2(const struct Lattice* lattice, const Spinor* x) {
  double sum = 0;
  for (long index = 0; !lattice->is_pattern && index < lattice->half; ++index) {
    for (int i = 0; i < spinor_reals; ++i) {
      const double number = numbers_of(&x[index])[i];
      sum += number * number;
    }
  }
  count_field_flops(lattice);
  return sum;
}
