// Wilson's Dirac operator (spin.h has the conventions), even-odd preconditioned. Its faces travel while the
// sites inside are computed.
#ifndef APENET_LQCD_WILSON_H
#define APENET_LQCD_WILSON_H

#include "gauge.h"
#include "lattice.h"
#include "spin.h"

struct Wilson {
  const struct Lattice* lattice;
  const struct Gauge* gauge;  // unused for a pattern
  double kappa;
  struct CommHalo* halo;
  HalfSpinor* out[directions];
  HalfSpinor* in[directions];
};

// The operator, or its adjoint.
enum Form { form_plain, form_adjoint };

// A field on the sites of one parity; NULL for a pattern.
Spinor* field_open(const struct Lattice* lattice);

void wilson_open(struct Wilson* wilson, const struct Lattice* lattice, const struct Gauge* gauge,
                 double kappa);
void wilson_close(struct Wilson* wilson);

// out = H in, from the other parity to `parity`: half of a Dslash. 1320 operations a site.
void wilson_hop(const struct Wilson* wilson, Spinor* out, const Spinor* in, int parity, enum Form form);
// out = (1 - kappa^2 H_eo H_oe) in on the even sites; `odd` is room for the odd ones.
void wilson_even(const struct Wilson* wilson, Spinor* out, const Spinor* in, Spinor* odd, enum Form form);

// On a field of one parity, each over the sites of this process. `norm2` is not summed over the processes.
void field_add(const struct Lattice* lattice, Spinor* y, double a, const Spinor* x);        // y += a x
void field_scale_add(const struct Lattice* lattice, Spinor* y, double a, const Spinor* x);  // y = x + a y
double field_norm2(const struct Lattice* lattice, const Spinor* x);

// Real numbers of a site; a sum of two fields takes twice as many operations, and so does a norm.
enum { spinor_reals = 24, half_spinor_reals = 12, hop_flops = 1320 };

#endif
