#include "gauge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apenet_compute.h"
#include "support.h"

// The finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

double random_number(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
  const uint64_t bits = mix(mix(mix(seed + golden) ^ (stream + 1) * golden) ^ (index + 1) * golden);
  return (double)(bits >> 11) * 0x1p-52 - 1;
}

// In double precision whatever `real` is, so that both precisions have the same field to rounding.
typedef double Row[3][2];

static void normalise(Row row) {
  double square = 0;
  for (int c = 0; c < 3; ++c) square += row[c][0] * row[c][0] + row[c][1] * row[c][1];
  for (int c = 0; c < 3; ++c) {
    row[c][0] /= sqrt(square);
    row[c][1] /= sqrt(square);
  }
}

// Takes from `row` its part along `unit`.
static void orthogonalise(Row row, Row unit) {
  double re = 0;
  double im = 0;
  for (int c = 0; c < 3; ++c) {
    re += unit[c][0] * row[c][0] + unit[c][1] * row[c][1];
    im += unit[c][0] * row[c][1] - unit[c][1] * row[c][0];
  }
  for (int c = 0; c < 3; ++c) {
    const double part_re = re * unit[c][0] - im * unit[c][1];
    const double part_im = re * unit[c][1] + im * unit[c][0];
    row[c][0] -= part_re;
    row[c][1] -= part_im;
  }
}

// The third row of a matrix of SU(3) is the conjugate of the cross product of the first two.
static void cross(Row out, Row a, Row b) {
  for (int c = 0; c < 3; ++c) {
    const int i = (c + 1) % 3;
    const int j = (c + 2) % 3;
    out[c][0] = a[i][0] * b[j][0] - a[i][1] * b[j][1] - (a[j][0] * b[i][0] - a[j][1] * b[i][1]);
    out[c][1] = -(a[i][0] * b[j][1] + a[i][1] * b[j][0] - (a[j][0] * b[i][1] + a[j][1] * b[i][0]));
  }
}

Matrix random_matrix(uint64_t seed, uint64_t stream) {
  Row rows[3];
  for (int row = 0; row < 2; ++row) {
    for (int c = 0; c < 3; ++c) {
      for (int part = 0; part < 2; ++part)
        rows[row][c][part] = random_number(seed, stream, (uint64_t)(6 * row + 2 * c + part));
    }
  }
  normalise(rows[0]);
  orthogonalise(rows[1], rows[0]);
  normalise(rows[1]);
  cross(rows[2], rows[0], rows[1]);
  Matrix u;
  for (int row = 0; row < 3; ++row) {
    for (int c = 0; c < 3; ++c) u.e[row][c] = (Complex){(real)rows[row][c][0], (real)rows[row][c][1]};
  }
  return u;
}

Matrix matrix_adjoint(const Matrix* a) {
  Matrix adjoint;
  for (int row = 0; row < 3; ++row) {
    for (int c = 0; c < 3; ++c) adjoint.e[row][c] = (Complex){a->e[c][row].re, -a->e[c][row].im};
  }
  return adjoint;
}

Matrix matrix_product(const Matrix* a, const Matrix* b) {
  Matrix product;
  for (int c = 0; c < 3; ++c) {
    const Vector column = {{b->e[0][c], b->e[1][c], b->e[2][c]}};
    const Vector image = times(a, &column);
    for (int row = 0; row < 3; ++row) product.e[row][c] = image.c[row];
  }
  return product;
}

void gauge_open(struct Gauge* gauge, const struct Lattice* lattice) {
  for (int parity = 0; parity < 2; ++parity) {
    gauge->links[parity] = allocate((size_t)lattice->half * dimensions, sizeof(Matrix));
  }
}

void gauge_close(struct Gauge* gauge) {
  free(gauge->links[0]);
  free(gauge->links[1]);
}

void gauge_set_unit(struct Gauge* gauge, const struct Lattice* lattice) {
  const Matrix one = {{{{1, 0}, {0, 0}, {0, 0}}, {{0, 0}, {1, 0}, {0, 0}}, {{0, 0}, {0, 0}, {1, 0}}}};
  for (int parity = 0; parity < 2; ++parity) {
    for (long link = 0; link < lattice->half * dimensions; ++link) gauge->links[parity][link] = one;
  }
}

void gauge_set_random(struct Gauge* gauge, const struct Lattice* lattice, uint64_t seed) {
  for (int parity = 0; parity < 2; ++parity) {
    for (long index = 0; index < lattice->half; ++index) {
      int coordinates[dimensions];
      lattice_site(lattice, parity, index, coordinates);
      const long number = lattice_number(lattice, coordinates);
      for (int mu = 0; mu < dimensions; ++mu)
        gauge->links[parity][index * dimensions + mu] =
            random_matrix(seed, (uint64_t)(number * dimensions + mu));
    }
  }
}

// The links at the faces of the neighbours: of one parity after the other, all four of a site.
struct GaugeHalo {
  struct CommHalo* halo;
  Matrix* out[directions];
  Matrix* in[directions];
};

// Only the upper neighbours' links are needed. Faces are as large both ways, so the others come along.
static void exchange_links(struct GaugeHalo* halo, const struct Gauge* gauge, const struct Lattice* lattice) {
  struct CommFace faces[directions] = {{0}};
  for (int direction = 0; direction < directions; ++direction) {
    const size_t half = (size_t)lattice->face_half[direction / 2];
    const size_t count = 2 * half * dimensions;
    halo->out[direction] = allocate(count, sizeof(Matrix));
    halo->in[direction] = allocate(count, sizeof(Matrix));
    faces[direction] = (struct CommFace){halo->out[direction], halo->in[direction], count * sizeof(Matrix)};
    for (int parity = 0; parity < 2; ++parity) {
      for (size_t k = 0; k < half; ++k) {
        const long index = lattice->face[parity][direction][k];
        memcpy(&halo->out[direction][((size_t)parity * half + k) * dimensions],
               &gauge->links[parity][index * dimensions], dimensions * sizeof(Matrix));
      }
    }
  }
  halo->halo = comm_declare_halo(faces);
  comm_start(halo->halo);
  comm_wait(halo->halo);
}

static void close_links(struct GaugeHalo* halo) {
  comm_free_halo(halo->halo);
  for (int direction = 0; direction < directions; ++direction) {
    free(halo->out[direction]);
    free(halo->in[direction]);
  }
}

// By parity of the site and dimension: the links of the upper neighbour of each site.
static const Matrix** upper_links(const struct Gauge* gauge, const struct Lattice* lattice,
                                  const struct GaugeHalo* halo, int parity, int mu) {
  const int up = 2 * mu;
  const Matrix** links = allocate((size_t)lattice->half, sizeof *links);
  for (long index = 0; index < lattice->half; ++index) {
    const int there = lattice->neighbour[parity][up][index];
    if (there >= 0) links[index] = &gauge->links[1 - parity][(long)there * dimensions];
  }
  for (long k = 0; k < lattice->face_half[mu]; ++k) {
    const long place = (1 - parity) * lattice->face_half[mu] + k;
    links[lattice->face[parity][up][k]] = &halo->in[up][place * dimensions];
  }
  return links;
}

static double plaquette_trace(const Matrix* here, const Matrix* upper_mu, const Matrix* upper_nu, int mu,
                              int nu) {
  const Matrix left = matrix_product(&here[mu], &upper_mu[nu]);
  const Matrix right = matrix_product(&here[nu], &upper_nu[mu]);
  double trace = 0;
  for (int row = 0; row < 3; ++row) {
    for (int c = 0; c < 3; ++c)
      trace += (double)(left.e[row][c].re * right.e[row][c].re + left.e[row][c].im * right.e[row][c].im);
  }
  return trace / 3;
}

static double sum_plaquettes(const struct Gauge* gauge, const struct Lattice* lattice,
                             const struct GaugeHalo* halo, int parity) {
  const Matrix** upper[dimensions];
  double sum = 0;
  for (int mu = 0; mu < dimensions; ++mu) upper[mu] = upper_links(gauge, lattice, halo, parity, mu);
  for (long index = 0; index < lattice->half; ++index) {
    const Matrix* here = &gauge->links[parity][index * dimensions];
    for (int mu = 0; mu < dimensions; ++mu) {
      for (int nu = mu + 1; nu < dimensions; ++nu)
        sum += plaquette_trace(here, upper[mu][index], upper[nu][index], mu, nu);
    }
  }
  for (int mu = 0; mu < dimensions; ++mu) free(upper[mu]);
  return sum;
}

double gauge_plaquette(const struct Gauge* gauge, const struct Lattice* lattice) {
  enum { planes = 6, plane_flops = 2 * 3 * 66 + 35 };
  struct GaugeHalo halo;
  exchange_links(&halo, gauge, lattice);
  double sum = 0;
  for (int parity = 0; parity < 2; ++parity) sum += sum_plaquettes(gauge, lattice, &halo, parity);
  ape_compute_flops(2.0 * (double)lattice->half * planes * plane_flops);
  close_links(&halo);
  comm_sum(&sum, 1);
  double plaquettes = planes;
  for (int mu = 0; mu < dimensions; ++mu) plaquettes *= lattice->whole[mu];
  return sum / plaquettes;
}
