// Bandwidths and latencies of apelib between ranks 0 and 1, by the definitions of `apenet bench`: prints one
// line for each size, "bytes pingpong_us bidirectional_us oneway_us". Arguments: how (auto, zero-copy,
// copied), rounds, sizes.
#include <apelib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 2 };

static void check(int code) {
  if (code == APE_OK) return;
  fprintf(stderr, "measure: %s\n", ape_last_error());
  exit(1);
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static double pingpong_us(int rank, char* out, char* in, size_t bytes, int how, int rounds) {
  double start = 0;
  for (int i = 0; i < WARM_UP + rounds; ++i) {
    if (i == WARM_UP) start = now_us();
    // The receive is posted before the message comes, and the send ends in its own time.
    ape_request requests[2];
    if (rank == 0) check(ape_isend(out, bytes, 1, 0, how, &requests[0]));
    check(ape_irecv(in, bytes, 1 - rank, 0, how, &requests[1]));
    if (rank == 1) {
      check(ape_wait(&requests[1], NULL));
      check(ape_isend(out, bytes, 0, 0, how, &requests[0]));
    }
    check(ape_wait_all(2, requests));
  }
  return (now_us() - start) / rounds / 2;
}

static double bidirectional_us(int rank, char* out, char* in, size_t bytes, int how, int rounds) {
  double start = 0;
  for (int i = 0; i < WARM_UP + rounds; ++i) {
    if (i == WARM_UP) start = now_us();
    check(ape_sendrecv(out, bytes, 1 - rank, in, bytes, 1 - rank, 0, how));
  }
  return (now_us() - start) / rounds;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int how = strcmp(argv[1], "copied") == 0      ? APE_COPIED
                  : strcmp(argv[1], "zero-copy") == 0 ? APE_ZERO_COPY
                                                      : APE_AUTO;
  const int rounds = atoi(argv[2]);
  int rank = 0;
  check(ape_init());
  check(ape_rank(&rank));
  for (int i = 3; i < argc; ++i) {
    const size_t bytes = strtoul(argv[i], NULL, 10);
    char* out = calloc(1, bytes);
    char* in = calloc(1, bytes);
    double half = 0;
    double both = 0;
    if (rank < 2) {
      half = pingpong_us(rank, out, in, bytes, how, rounds);
      both = bidirectional_us(rank, out, in, bytes, how, rounds);
    }
    check(ape_barrier());
    if (rank == 0) printf("%zu %.3f %.3f\n", bytes, half, both);
    free(out);
    free(in);
  }
  check(ape_finalize());
  return 0;
}
