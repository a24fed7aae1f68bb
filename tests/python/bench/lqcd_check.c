// Properties of the operator of bench/lqcd that hold for every gauge field, and the fields themselves:
//
//   lqcd_check LATTICE GRID unit|random KAPPA PREFIX
//
// Process R writes PREFIX.R: for each of its sites, as doubles, its number, the links, the source (of a unit
// field: 1 in the first component of site 0), M source, and the solution psi of M psi = source. Process 0
// prints the deviations.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver.h"
#include "support.h"

static struct Lattice lattice;
static double kappa;

struct Field {
  Spinor* part[2];
};

static struct Field open_field(void) {
  return (struct Field){{field_open(&lattice), field_open(&lattice)}};
}

static void close_field(struct Field* field) {
  free(field->part[0]);
  free(field->part[1]);
}

static real* numbers(struct Field* field, int parity, long index) {
  return &field->part[parity][index].s[0].c[0].re;
}

static long number_of(int parity, long index) {
  int coordinates[dimensions];
  lattice_site(&lattice, parity, index, coordinates);
  return lattice_number(&lattice, coordinates);
}

static void set_random(struct Field* field, uint64_t seed) {
  for (int parity = 0; parity < 2; ++parity) {
    for (long index = 0; index < lattice.half; ++index) {
      for (int i = 0; i < spinor_reals; ++i)
        numbers(field, parity, index)[i] =
            (real)random_number(seed, (uint64_t)number_of(parity, index), (uint64_t)i);
    }
  }
}

static void set_point(struct Field* field) {
  for (int parity = 0; parity < 2; ++parity) {
    for (long index = 0; index < lattice.half; ++index) {
      if (number_of(parity, index) == 0) numbers(field, parity, index)[0] = 1;
    }
  }
}

// out = M in or M^dagger in
static void apply(const struct Wilson* wilson, struct Field* out, const struct Field* in, enum Form form) {
  for (int parity = 0; parity < 2; ++parity) {
    wilson_hop(wilson, out->part[parity], in->part[1 - parity], parity, form);
    field_scale_add(&lattice, out->part[parity], -kappa, in->part[parity]);
  }
}

static void apply_gamma5(struct Field* field) {
  for (int parity = 0; parity < 2; ++parity) {
    for (long index = 0; index < lattice.half; ++index) {
      for (int i = spinor_reals / 2; i < spinor_reals; ++i) numbers(field, parity, index)[i] *= -1;
    }
  }
}

static Matrix rotation_at(const int coordinates[dimensions]) {
  return random_matrix(77, (uint64_t)lattice_number(&lattice, coordinates));
}

static void rotate(struct Field* field) {
  for (int parity = 0; parity < 2; ++parity) {
    for (long index = 0; index < lattice.half; ++index) {
      int coordinates[dimensions];
      lattice_site(&lattice, parity, index, coordinates);
      const Matrix g = rotation_at(coordinates);
      Spinor* spinor = &field->part[parity][index];
      for (int s = 0; s < 4; ++s) spinor->s[s] = times(&g, &spinor->s[s]);
    }
  }
}

// U_mu(x) becomes g(x) U_mu(x) g(x + mu)^dagger
static void rotate_links(struct Gauge* gauge) {
  for (int parity = 0; parity < 2; ++parity) {
    for (long link = 0; link < lattice.half * dimensions; ++link) {
      const int mu = (int)(link % dimensions);
      int coordinates[dimensions];
      lattice_site(&lattice, parity, link / dimensions, coordinates);
      const Matrix here = rotation_at(coordinates);
      coordinates[mu] = (coordinates[mu] + 1) % lattice.whole[mu];
      const Matrix upper = rotation_at(coordinates);
      const Matrix back = matrix_adjoint(&upper);
      const Matrix half = matrix_product(&here, &gauge->links[parity][link]);
      gauge->links[parity][link] = matrix_product(&half, &back);
    }
  }
}

// |a - b| / |b|
static double distance(const struct Field* a, const struct Field* b) {
  double sums[2] = {0, 0};
  struct Field difference = open_field();
  for (int parity = 0; parity < 2; ++parity) {
    memcpy(difference.part[parity], a->part[parity], (size_t)lattice.half * sizeof(Spinor));
    field_add(&lattice, difference.part[parity], -1, b->part[parity]);
    sums[0] += field_norm2(&lattice, difference.part[parity]);
    sums[1] += field_norm2(&lattice, b->part[parity]);
  }
  comm_sum(sums, 2);
  close_field(&difference);
  return sqrt(sums[0] / sums[1]);
}

// The real part of <a, b>
static double product(struct Field* a, struct Field* b) {
  double sum = 0;
  for (int parity = 0; parity < 2; ++parity) {
    for (long index = 0; index < lattice.half; ++index) {
      for (int i = 0; i < spinor_reals; ++i)
        sum += (double)numbers(a, parity, index)[i] * (double)numbers(b, parity, index)[i];
    }
  }
  comm_sum(&sum, 1);
  return sum;
}

static void write_reals(FILE* file, const real* values, int count) {
  for (int i = 0; i < count; ++i) {
    const double value = values[i];
    if (fwrite(&value, sizeof value, 1, file) != 1) fail("cannot write");
  }
}

static void write_fields(const char* prefix, const struct Gauge* gauge, struct Field* fields, int count) {
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", prefix, lattice.rank);
  FILE* file = fopen(name, "wb");
  if (file == NULL) fail("cannot write %s", name);
  for (int parity = 0; parity < 2; ++parity) {
    for (long index = 0; index < lattice.half; ++index) {
      const double number = (double)number_of(parity, index);
      fwrite(&number, sizeof number, 1, file);
      write_reals(file, &gauge->links[parity][index * dimensions].e[0][0].re, 18 * dimensions);
      for (int i = 0; i < count; ++i) write_reals(file, numbers(&fields[i], parity, index), spinor_reals);
    }
  }
  if (fclose(file) != 0) fail("cannot write %s", name);
}

static void check_properties(const struct Wilson* wilson, struct Gauge* gauge) {
  struct Field psi = open_field();
  struct Field chi = open_field();
  struct Field m_psi = open_field();
  struct Field other = open_field();
  set_random(&psi, 3);
  set_random(&chi, 4);
  apply(wilson, &m_psi, &psi, form_plain);
  apply(wilson, &other, &chi, form_adjoint);
  const double forward = product(&chi, &m_psi);
  const double adjoint = fabs(forward - product(&other, &psi)) / fabs(forward);

  apply_gamma5(&chi);
  struct Field gamma_m_gamma = open_field();
  apply(wilson, &gamma_m_gamma, &chi, form_plain);
  apply_gamma5(&gamma_m_gamma);
  const double gamma5 = distance(&gamma_m_gamma, &other);

  const double plaquette = gauge_plaquette(gauge, &lattice);
  rotate_links(gauge);
  rotate(&psi);
  rotate(&m_psi);
  const double rotated_plaquette = gauge_plaquette(gauge, &lattice);
  apply(wilson, &other, &psi, form_plain);
  const double covariance = distance(&other, &m_psi);
  if (lattice.rank == 0) {
    printf("{\"adjoint\": %.3g, \"gamma5\": %.3g, \"covariance\": %.3g, ", adjoint, gamma5, covariance);
    printf("\"plaquette\": %.17g, \"rotated_plaquette\": %.17g}\n", plaquette, rotated_plaquette);
  }
  close_field(&psi);
  close_field(&chi);
  close_field(&m_psi);
  close_field(&other);
  close_field(&gamma_m_gamma);
}

int main(int argc, char** argv) {
  int whole[dimensions];
  int grid[dimensions];
  if (argc != 6) refuse("arguments", argv[0], "LATTICE GRID unit|random KAPPA PREFIX");
  parse_extents("LATTICE", argv[1], whole);
  parse_extents("GRID", argv[2], grid);
  kappa = parse_number("KAPPA", argv[4], 0, 0.25);
  const bool is_unit = strcmp(argv[3], "unit") == 0;
  lattice_open(&lattice, whole, grid, false);
  struct Gauge gauge;
  struct Wilson wilson;
  gauge_open(&gauge, &lattice);
  if (is_unit) {
    gauge_set_unit(&gauge, &lattice);
  } else {
    gauge_set_random(&gauge, &lattice, 5);
  }
  wilson_open(&wilson, &lattice, &gauge, kappa);
  struct Field fields[3] = {open_field(), open_field(), open_field()};
  if (is_unit) {
    set_point(&fields[0]);
  } else {
    set_random(&fields[0], 6);
  }
  apply(&wilson, &fields[1], &fields[0], form_plain);
  const struct Convergence until = {sizeof(real) == sizeof(double) ? 1e-13 : 1e-6, 500};
  struct History history = {.residuals = allocate((size_t)until.most_iterations, sizeof(double))};
  solve(&wilson, fields[2].part, fields[0].part, &until, &history);
  write_fields(argv[5], &gauge, fields, 3);
  check_properties(&wilson, &gauge);
  wilson_close(&wilson);
  gauge_close(&gauge);
  for (int i = 0; i < 3; ++i) close_field(&fields[i]);
  free(history.residuals);
  lattice_close(&lattice);
  return 0;
}
