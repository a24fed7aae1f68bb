// Times a Dslash and the iterations of conjugate gradients of Wilson's operator, and solves M psi = eta for a
// random gauge field and source.
//
//   lqcd --lattice 8x8x8x8 --grid 2x2x1x1 --output FILE
//
// With --pattern 1 no field exists: the messages, the sums and the operations that an iteration declares to
// the simulator are those of the computation, for which a large lattice then does not have to wait.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver.h"
#include "support.h"

static struct {
  int whole[dimensions];
  int grid[dimensions];
  double kappa, tolerance;
  int iterations;
  bool is_pattern;
  const char* output;
} arguments = {.whole = {4, 4, 4, 8},
               .grid = {1, 1, 1, 1},
               .kappa = 0.12,
               .tolerance = sizeof(real) == sizeof(double) ? 1e-10 : 1e-5,
               .iterations = 1000};

static void parse(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    const char* option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(option, "--lattice") == 0) {
      parse_extents(option, value, arguments.whole);
    } else if (strcmp(option, "--grid") == 0) {
      parse_extents(option, value, arguments.grid);
    } else if (strcmp(option, "--kappa") == 0) {
      arguments.kappa = parse_number(option, value, 0, 0.25);
    } else if (strcmp(option, "--tolerance") == 0) {
      arguments.tolerance = parse_number(option, value, 0, 0.1);
    } else if (strcmp(option, "--iterations") == 0) {
      arguments.iterations = (int)parse_number(option, value, 1, 1000000);
    } else if (strcmp(option, "--pattern") == 0) {
      arguments.is_pattern = parse_number(option, value, 0, 1) == 1;
    } else if (strcmp(option, "--output") == 0) {
      arguments.output = value;
    } else {
      refuse("option", option, "one of lqcd.c");
    }
  }
}

struct Measured {
  double plaquette;
  double dslash_us;
  struct History history;
};

// Once before it is timed, because the first exchange also publishes memory. Then all begin together.
static double time_dslash(const struct Wilson* wilson, Spinor* const out[2], Spinor* const in[2]) {
  double begin_us = 0;
  for (int i = 0; i < 2; ++i) {
    double nothing = 0;
    comm_sum(&nothing, 1);
    begin_us = time_us();
    wilson_hop(wilson, out[0], in[1], 0, form_plain);
    wilson_hop(wilson, out[1], in[0], 1, form_plain);
  }
  return time_us() - begin_us;
}

static void set_source(const struct Lattice* lattice, Spinor* const eta[2]) {
  for (int parity = 0; parity < 2; ++parity) {
    for (long index = 0; index < lattice->half; ++index) {
      int coordinates[dimensions];
      lattice_site(lattice, parity, index, coordinates);
      const uint64_t number = (uint64_t)lattice_number(lattice, coordinates);
      real* numbers = &eta[parity][index].s[0].c[0].re;
      for (int i = 0; i < spinor_reals; ++i) numbers[i] = (real)random_number(2, number, (uint64_t)i);
    }
  }
}

static struct Measured measure(const struct Lattice* lattice) {
  struct Gauge gauge = {{NULL, NULL}};
  struct Wilson wilson;
  struct Measured measured = {.history.residuals = allocate((size_t)arguments.iterations, sizeof(double))};
  Spinor* eta[2] = {field_open(lattice), field_open(lattice)};
  Spinor* psi[2] = {field_open(lattice), field_open(lattice)};
  if (!lattice->is_pattern) {
    gauge_open(&gauge, lattice);
    gauge_set_random(&gauge, lattice, 1);
    measured.plaquette = gauge_plaquette(&gauge, lattice);
    set_source(lattice, eta);
  }
  wilson_open(&wilson, lattice, &gauge, arguments.kappa);
  measured.dslash_us = time_dslash(&wilson, psi, eta);
  const struct Convergence until = {arguments.tolerance, arguments.iterations};
  if (lattice->is_pattern) {
    solve_normal(&wilson, psi[0], eta[0], &until, &measured.history);
  } else {
    solve(&wilson, psi, eta, &until, &measured.history);
  }
  wilson_close(&wilson);
  for (int parity = 0; parity < 2; ++parity) {
    free(eta[parity]);
    free(psi[parity]);
  }
  if (!lattice->is_pattern) gauge_close(&gauge);
  return measured;
}

// Operations and bytes are those of one process.
static void print(const struct Lattice* lattice, const struct Measured* measured) {
  FILE* output = arguments.output == NULL ? stdout : fopen(arguments.output, "w");
  if (output == NULL) refuse("--output", arguments.output, "a file that can be written");
  long halo_bytes = 0;
  for (int mu = 0; mu < dimensions; ++mu) halo_bytes += 4 * lattice->face_half[mu] * (long)sizeof(HalfSpinor);
  const struct History* history = &measured->history;
  fprintf(output, "{\"iterations\": %d, \"iteration_us\": %.6f, \"dslash_us\": %.6f, ", history->iterations,
          history->time_us / history->iterations, measured->dslash_us);
  fprintf(output, "\"iteration_flops\": %.0f, \"dslash_flops\": %.0f, \"dslash_halo_bytes\": %ld",
          solver_flops(lattice), 2.0 * (double)lattice->half * hop_flops, halo_bytes);
  if (!lattice->is_pattern) {
    fprintf(output, ", \"plaquette\": %.17g, \"residuals\": [", measured->plaquette);
    for (int i = 0; i < history->iterations; ++i)
      fprintf(output, "%s%.17g", i == 0 ? "" : ", ", history->residuals[i]);
    fputc(']', output);
  }
  fputs("}\n", output);
  if (output != stdout && fclose(output) != 0) fail("--output = '%s': not written", arguments.output);
}

int main(int argc, char** argv) {
  struct Lattice lattice;
  parse(argc, argv);
  lattice_open(&lattice, arguments.whole, arguments.grid, arguments.is_pattern);
  const struct Measured measured = measure(&lattice);
  if (lattice.rank == 0) print(&lattice, &measured);
  free(measured.history.residuals);
  lattice_close(&lattice);
  return 0;
}
