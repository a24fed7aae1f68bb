// Gauge fields: SU(3) matrices on the links of the lattice.
#ifndef APENET_LQCD_GAUGE_H
#define APENET_LQCD_GAUGE_H

#include <stdint.h>

#include "lattice.h"
#include "spin.h"

// links[parity][4 index + mu] is U_mu at this site.
struct Gauge {
  Matrix* links[2];
};

// A number of [-1, 1) that depends only on its arguments: fields do not depend on how the lattice is divided.
double random_number(uint64_t seed, uint64_t stream, uint64_t index);

// Drawn from a seed and a stream, distributed over all of SU(3), but not by Haar's measure.
Matrix random_matrix(uint64_t seed, uint64_t stream);
Matrix matrix_product(const Matrix* a, const Matrix* b);
Matrix matrix_adjoint(const Matrix* a);

// Not for a lattice that is a pattern only. All links are 1, or random.
void gauge_open(struct Gauge* gauge, const struct Lattice* lattice);
void gauge_close(struct Gauge* gauge);
void gauge_set_unit(struct Gauge* gauge, const struct Lattice* lattice);
void gauge_set_random(struct Gauge* gauge, const struct Lattice* lattice, uint64_t seed);

// Re tr U_mu(x) U_nu(x + mu) U_mu(x + nu)^dagger U_nu(x)^dagger / 3, averaged over the plaquettes of the
// whole lattice: 1 if all links are. A call of all processes, which exchange the links of their faces.
double gauge_plaquette(const struct Gauge* gauge, const struct Lattice* lattice);

#endif
