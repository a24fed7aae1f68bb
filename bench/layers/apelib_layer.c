// The library of the APENet machines: the network reads and writes the program's memory.
#include <apelib.h>
#include <time.h>

typedef ape_request Request;
#include "two_sided.h"

static void check(int code, const char* call) {
  if (code != APE_OK) fail("%s: %s", call, ape_last_error());
}

void layer_open(void) {
  check(ape_init(), "ape_init");
}

static void close_library(void) {
  check(ape_finalize(), "ape_finalize");
}

int layer_rank(void) {
  int rank = 0;
  check(ape_rank(&rank), "ape_rank");
  return rank;
}

double layer_time_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void begin_send(const void* data, long bytes, int rank, int tag, Request* request) {
  check(ape_isend(data, (size_t)bytes, rank, tag, APE_ZERO_COPY, request), "ape_isend");
}

static void begin_receive(void* data, long bytes, int rank, int tag, Request* request) {
  check(ape_irecv(data, (size_t)bytes, rank, tag, APE_ZERO_COPY, request), "ape_irecv");
}

static void end_request(Request* request) {
  check(ape_wait(request, NULL), "ape_wait");
}
