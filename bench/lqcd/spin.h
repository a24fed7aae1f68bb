// Colour and spin at one site: SU(3) matrices, spinors, and the projection of a spinor to half of its spins.
//
// Conventions. The operator is Wilson's with r = 1, in the hopping form (Gattringer and Lang, "Quantum
// Chromodynamics on the Lattice", Springer 2010, section 5.1):
//
//   M = 1 - kappa H
//   (H psi)(x) = sum over mu of (1 - gamma_mu) U_mu(x) psi(x + mu) + (1 + gamma_mu) U_mu(x - mu)^dagger psi(x
//   - mu)
//
// with kappa = 1 / (2 m + 8), lattice spacing 1, and periodic boundaries in all four dimensions, for
// fermions, too. The gamma matrices are Euclidean and hermitian, {gamma_mu, gamma_nu} = 2 delta_mu,nu, in the
// chiral basis of DeGrand and Rossi (Comput. Phys. Commun. 60 (1990) 211), which MILC and QDP++ use as well:
//
//   gamma_mu = ( 0            A_mu )   A_x = i sigma_x, A_y = -i sigma_y, A_z = i sigma_z, A_t = 1
//              ( A_mu^dagger  0    )   gamma_5 = gamma_x gamma_y gamma_z gamma_t = diag(1, 1, -1, -1)
//
// Since A_mu is unitary, the lower spins of (1 + s gamma_mu) psi are s A_mu^dagger times its upper spins
// h = psi_upper + s A_mu psi_lower. So two spins of three complex colours are all that a neighbour needs:
// 12 real numbers, 96 bytes in double and 48 in single precision.
#ifndef APENET_LQCD_SPIN_H
#define APENET_LQCD_SPIN_H

#ifdef LQCD_SINGLE
typedef float real;
#else
typedef double real;
#endif

typedef struct {
  real re, im;
} Complex;
typedef struct {
  Complex c[3];
} Vector;
typedef struct {
  Complex e[3][3];
} Matrix;
typedef struct {
  Vector s[4];
} Spinor;
typedef struct {
  Vector s[2];
} HalfSpinor;

#define LQCD_INLINE static inline __attribute__((always_inline))

// Row a of A_mu has one entry, i^quarter in this column.
static const int gamma_column[4][2] = {{1, 0}, {1, 0}, {0, 1}, {0, 1}};
static const int gamma_quarter[4][2] = {{1, 1}, {2, 0}, {1, 3}, {0, 0}};

// i^quarter z
LQCD_INLINE Complex rotated(Complex z, int quarter) {
  switch (quarter & 3) {
    case 0:
      return z;
    case 1:
      return (Complex){-z.im, z.re};
    case 2:
      return (Complex){-z.re, -z.im};
    default:
      return (Complex){z.im, -z.re};
  }
}

LQCD_INLINE void add_rotated(Vector* sum, const Vector* v, int quarter) {
  for (int c = 0; c < 3; ++c) {
    const Complex z = rotated(v->c[c], quarter);
    sum->c[c].re += z.re;
    sum->c[c].im += z.im;
  }
}

// The upper spins of (1 + sign gamma_mu) psi: 12 floating-point operations.
LQCD_INLINE HalfSpinor projected(const Spinor* psi, int mu, int sign) {
  HalfSpinor h;
  for (int a = 0; a < 2; ++a) {
    h.s[a] = psi->s[a];
    add_rotated(&h.s[a], &psi->s[2 + gamma_column[mu][a]], gamma_quarter[mu][a] + (sign > 0 ? 0 : 2));
  }
  return h;
}

// Adds all spins of (1 + sign gamma_mu) psi, given by their upper half: 24 operations.
LQCD_INLINE void add_reconstructed(Spinor* sum, const HalfSpinor* h, int mu, int sign) {
  for (int a = 0; a < 2; ++a) {
    add_rotated(&sum->s[a], &h->s[a], 0);
    add_rotated(&sum->s[2 + gamma_column[mu][a]], &h->s[a], -gamma_quarter[mu][a] + (sign > 0 ? 0 : 2));
  }
}

// U v and U^dagger v: 66 operations.
LQCD_INLINE Vector times(const Matrix* u, const Vector* v) {
  Vector product;
  for (int row = 0; row < 3; ++row) {
    Complex sum = {0, 0};
    for (int k = 0; k < 3; ++k) {
      const Complex e = u->e[row][k];
      sum.re += e.re * v->c[k].re - e.im * v->c[k].im;
      sum.im += e.re * v->c[k].im + e.im * v->c[k].re;
    }
    product.c[row] = sum;
  }
  return product;
}

LQCD_INLINE Vector adjoint_times(const Matrix* u, const Vector* v) {
  Vector product;
  for (int row = 0; row < 3; ++row) {
    Complex sum = {0, 0};
    for (int k = 0; k < 3; ++k) {
      const Complex e = u->e[k][row];
      sum.re += e.re * v->c[k].re + e.im * v->c[k].im;
      sum.im += e.re * v->c[k].im - e.im * v->c[k].re;
    }
    product.c[row] = sum;
  }
  return product;
}

#endif
