// M psi = eta by conjugate gradients on the normal equation of the even sites.
#ifndef APENET_LQCD_SOLVER_H
#define APENET_LQCD_SOLVER_H

#include "wilson.h"

struct Convergence {
  double tolerance;     // limit of |residual| / |right side|; a pattern does not converge
  int most_iterations;  // and ends here
};

// What a solution took. `residuals` has room for most_iterations: |residual| / |right side| after each.
struct History {
  int iterations;
  double* residuals;
  double time_us;  // time of all iterations
};

// x = (A^dagger A)^-1 b on the even sites, A = 1 - kappa^2 H_eo H_oe. b and x are different fields. An
// iteration applies H four times and has two global sums of one number.
void solve_normal(const struct Wilson* wilson, Spinor* x, const Spinor* b, const struct Convergence* until,
                  struct History* history);

// The whole system: psi and eta have the fields of both parities, even first. eta is kept.
void solve(const struct Wilson* wilson, Spinor* const psi[2], Spinor* const eta[2],
           const struct Convergence* until, struct History* history);

// Operations of one iteration at this process.
double solver_flops(const struct Lattice* lattice);

#endif
