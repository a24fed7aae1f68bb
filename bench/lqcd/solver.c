#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static void copy_field(const struct Lattice* lattice, Spinor* to, const Spinor* from) {
  if (!lattice->is_pattern) memcpy(to, from, (size_t)lattice->half * sizeof(Spinor));
}

static double summed_norm2(const struct Lattice* lattice, const Spinor* x) {
  double sum = field_norm2(lattice, x);
  comm_sum(&sum, 1);
  return lattice->is_pattern ? 1 : sum;
}

void solve_normal(const struct Wilson* wilson, Spinor* x, const Spinor* b, const struct Convergence* until,
                  struct History* history) {
  const struct Lattice* lattice = wilson->lattice;
  Spinor* r = field_open(lattice);
  Spinor* p = field_open(lattice);
  Spinor* ap = field_open(lattice);
  Spinor* aap = field_open(lattice);
  Spinor* odd = field_open(lattice);
  copy_field(lattice, r, b);
  copy_field(lattice, p, b);
  if (!lattice->is_pattern) memset(x, 0, (size_t)lattice->half * sizeof *x);
  const double right = summed_norm2(lattice, b);
  const double tolerance = lattice->is_pattern ? 0 : until->tolerance;
  double left = right;
  history->iterations = 0;
  const double begin_us = time_us();
  while (history->iterations < until->most_iterations && left > tolerance * tolerance * right) {
    wilson_even(wilson, ap, p, odd, form_plain);
    wilson_even(wilson, aap, ap, odd, form_adjoint);
    const double alpha = left / summed_norm2(lattice, ap);
    field_add(lattice, x, alpha, p);
    field_add(lattice, r, -alpha, aap);
    const double next = summed_norm2(lattice, r);
    field_scale_add(lattice, p, next / left, r);
    left = next;
    history->residuals[history->iterations++] = sqrt(left / right);
  }
  history->time_us = time_us() - begin_us;
  free(r);
  free(p);
  free(ap);
  free(aap);
  free(odd);
}

// M psi = eta on both parities becomes A psi_e = eta_e + kappa H_eo eta_o, and psi_o = eta_o + kappa H_oe
// psi_e.
void solve(const struct Wilson* wilson, Spinor* const psi[2], Spinor* const eta[2],
           const struct Convergence* until, struct History* history) {
  const struct Lattice* lattice = wilson->lattice;
  Spinor* even = field_open(lattice);
  Spinor* right = field_open(lattice);
  wilson_hop(wilson, even, eta[1], 0, form_plain);
  field_scale_add(lattice, even, wilson->kappa, eta[0]);
  wilson_even(wilson, right, even, psi[1], form_adjoint);
  solve_normal(wilson, psi[0], right, until, history);
  wilson_hop(wilson, psi[1], psi[0], 1, form_plain);
  field_scale_add(lattice, psi[1], wilson->kappa, eta[1]);
  free(even);
  free(right);
}

double solver_flops(const struct Lattice* lattice) {
  enum { hops = 4, field_operations = 2 + 5 };
  return (double)lattice->half * (hops * hop_flops + field_operations * 2.0 * spinor_reals);
}
