// Routes on a torus of 4x2x2 with one rank on each node: `routes set SLACK`, by how many ns trips of equal
// length may differ (a network that counts in cycles of a clock). Elsewhere, `routes refused`: the network
// has none to read or set. Rank 0 prints times and refusals.
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "checks.h"

enum { RANKS = 16, MOST_HOPS = 16, REPETITIONS = 4, LONG = 4 << 20 };

static int rank, size;
static int64_t slack_ns;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int at(int x, int y, int z) {
  const int coords[APE_MAX_DIMS] = {x, y, z};
  int found = -1;
  CALL(ape_rank_at(coords, &found));
  return found;
}

// Round trips between two ranks, in ns; 0 at other ranks, which are silent meanwhile. One more comes first:
// the ranks leave a barrier at different times.
static int64_t round_trips(int one, int other) {
  char byte = 0;
  int64_t begin = 0;
  CALL(ape_barrier());
  for (int i = 0; i <= REPETITIONS; ++i) {
    if (i == 1) begin = now_ns();
    if (rank == one) CALL(ape_send(&byte, 1, other, 0, APE_AUTO));
    if (rank == one) CALL(ape_recv(&byte, 1, other, 0, APE_AUTO));
    if (rank == other) CALL(ape_recv(&byte, 1, one, 0, APE_AUTO));
    if (rank == other) CALL(ape_send(&byte, 1, one, 0, APE_AUTO));
  }
  const int64_t took = rank == one ? now_ns() - begin : 0;
  CALL(ape_broadcast(&byte, 1, one));
  return took;
}

static int hops_of(int from, int to) {
  int hops = -1;
  CALL(ape_route_get(from, to, 0, NULL, &hops));
  return hops;
}

static void add(int from, int to, int hops, const int directions[]) {
  if (rank == 0) CALL(ape_route_add(from, to, hops, directions));
}

// All ranks are refused alike; rank 0 prints why.
static void expect_refusal(int code, const char* label) {
  FAILS(code, ape_route_apply());
  if (rank == 0) printf("%s: %s\n", label, ape_last_error());
}

static void reading(void) {
  int directions[MOST_HOPS] = {-1, -1, -1, -1};
  int hops = -1;
  CALL(ape_route_get(at(0, 0, 0), at(1, 1, 1), MOST_HOPS, directions, &hops));
  EXPECT(hops == 3 && directions[0] == APE_PLUS_X && directions[3] == -1);
  directions[1] = -1;
  CALL(ape_route_get(at(3, 0, 0), at(1, 0, 0), 1, directions, &hops));
  EXPECT(hops == 2 && directions[0] / 2 == 0 && directions[1] == -1);
  EXPECT(hops_of(rank, rank) == 0);
}

static void longer_ways(void) {
  const int here = at(0, 0, 0), there = at(1, 0, 0), three_away = at(1, 1, 1);
  const int64_t direct = round_trips(here, there);
  const int64_t own_three = round_trips(here, three_away);
  add(here, there, 3, (int[]){APE_PLUS_Y, APE_PLUS_X, APE_MINUS_Y});
  add(there, here, 3, (int[]){APE_PLUS_Y, APE_MINUS_X, APE_MINUS_Y});
  EXPECT(hops_of(here, there) == 1);  // declared, not taken
  CALL(ape_route_apply());
  EXPECT(hops_of(here, there) == 3 && hops_of(there, here) == 3);
  EXPECT(hops_of(at(0, 1, 0), there) == 2);  // the end of a route is a route, too
  const int64_t three = round_trips(here, there);
  // The other way round the ring, over its wrap-around link; the former routes are forgotten.
  add(here, there, 3, (int[]){APE_MINUS_X, APE_MINUS_X, APE_MINUS_X});
  CALL(ape_route_apply());
  EXPECT(hops_of(here, there) == 3 && hops_of(there, here) == 1);
  const int64_t one_way_round = round_trips(here, there);
  CALL(ape_route_apply());
  EXPECT(hops_of(here, there) == 1);
  const int64_t again = round_trips(here, there);
  if (rank != here) return;
  const int64_t slack = 2 * REPETITIONS * slack_ns + 1;  // a read of the clock rounds
  EXPECT(llabs(three - own_three) <= slack && llabs(again - direct) <= slack);
  EXPECT(llabs(2 * (one_way_round - direct) - (three - direct)) <= 2 * slack);
  EXPECT(three - direct > 4 * slack);
  printf("1 hop %lld ns, 3 hops %lld ns\n", (long long)direct, (long long)three);
}

// Routes that say what the machine's own routing says change no time.
static void the_same_routes(void) {
  const int here = at(3, 0, 0), there = at(1, 1, 1);
  const int64_t before = round_trips(here, there);
  for (int to = 0; to < RANKS; ++to) {
    int directions[MOST_HOPS];
    int hops = 0;
    if (to == rank) continue;
    CALL(ape_route_get(rank, to, MOST_HOPS, directions, &hops));
    CALL(ape_route_add(rank, to, hops, directions));
  }
  CALL(ape_route_apply());
  EXPECT(llabs(round_trips(here, there) - before) <= 2 * REPETITIONS * slack_ns + 1);
  CALL(ape_route_apply());
}

// Each of four routes is harmless, and so are three of them.
static void deadlock(void) {
  const int corner[4] = {at(0, 0, 0), at(1, 0, 0), at(1, 1, 0), at(0, 1, 0)};
  const int turns[4][2] = {{APE_PLUS_X, APE_PLUS_Y},
                           {APE_PLUS_Y, APE_MINUS_X},
                           {APE_MINUS_X, APE_MINUS_Y},
                           {APE_MINUS_Y, APE_PLUS_X}};
  int hops = 0, directions[2];
  for (int i = 0; i < 3; ++i) {
    if (rank == corner[i]) CALL(ape_route_add(rank, corner[(i + 2) % 4], 2, turns[i]));
  }
  CALL(ape_route_apply());
  for (int i = 0; i < 4; ++i) {
    if (rank == corner[i]) CALL(ape_route_add(rank, corner[(i + 2) % 4], 2, turns[i]));
  }
  expect_refusal(APE_ERR_DEADLOCK, "deadlock");
  for (int i = 0; i < 3; ++i) {  // the old routes have stayed
    CALL(ape_route_get(corner[i], corner[(i + 2) % 4], 2, directions, &hops));
    EXPECT(hops == 2 && memcmp(directions, turns[i], sizeof directions) == 0);
  }
  CALL(ape_route_apply());
}

static void bad_routes(void) {
  const int here = at(0, 0, 0), there = at(1, 0, 0);
  int value = 0;
  const int east = APE_PLUS_X, beyond = 2 * APE_MAX_DIMS, negative = -1;
  FAILS(APE_ERR_ROUTE, ape_route_add(rank, rank, 1, &east));
  FAILS(APE_ERR_ROUTE, ape_route_add(here, there, 0, &east));
  FAILS(APE_ERR_ROUTE, ape_route_add(here, there, -3, &east));
  FAILS(APE_ERR_RANK, ape_route_add(here, size, 1, &east));
  FAILS(APE_ERR_RANK, ape_route_add(-1, there, 1, &east));
  FAILS(APE_ERR_ARGUMENT, ape_route_add(here, there, 1, NULL));
  FAILS(APE_ERR_DIRECTION, ape_route_add(here, there, 1, &beyond));
  FAILS(APE_ERR_DIRECTION, ape_route_add(here, there, 1, &negative));
  FAILS(APE_ERR_RANK, ape_route_get(0, size, 0, NULL, &value));
  FAILS(APE_ERR_ARGUMENT, ape_route_get(0, 1, 0, NULL, NULL));
  FAILS(APE_ERR_ARGUMENT, ape_route_get(0, 1, 1, NULL, &value));
  FAILS(APE_ERR_ARGUMENT, ape_route_get(0, 1, -1, &value, &value));
  add(here, there, 2, (int[]){APE_PLUS_X, APE_PLUS_X});
  expect_refusal(APE_ERR_ROUTE, "wrong end");
  add(here, there, 5, (int[]){APE_PLUS_X, APE_PLUS_X, APE_PLUS_X, APE_PLUS_X, APE_PLUS_X});
  expect_refusal(APE_ERR_ROUTE, "in a cycle");
  add(here, there, 1, (int[]){6});
  expect_refusal(APE_ERR_ROUTE, "no link");
  add(here, there, 1, (int[]){11});
  expect_refusal(APE_ERR_ROUTE, "no direction");
  add(here, there, 3, (int[]){APE_PLUS_Y, APE_PLUS_X, APE_MINUS_Y});
  if (rank == 5) CALL(ape_route_add(here, there, 3, (int[]){APE_PLUS_Z, APE_PLUS_X, APE_MINUS_Z}));
  expect_refusal(APE_ERR_ROUTE, "two entries");
  EXPECT(hops_of(here, there) == 1);
  CALL(ape_route_apply());  // what was refused is forgotten
}

// Routes wait until the network is empty, but not for a long message.
static void busy(void) {
  static char data[LONG];
  const int from = at(2, 0, 0), to = at(3, 1, 1);
  for (int bytes = 1000; bytes <= LONG; bytes = bytes == 1000 ? LONG : LONG + 1) {
    ape_request request = APE_NO_REQUEST;
    if (rank == to) CALL(ape_irecv(data, (size_t)bytes, from, 2, APE_AUTO, &request));
    CALL(ape_barrier());
    if (rank == from) CALL(ape_isend(data, (size_t)bytes, to, 2, APE_AUTO, &request));
    add(at(0, 0, 0), at(1, 0, 0), 3, (int[]){APE_PLUS_Y, APE_PLUS_X, APE_MINUS_Y});
    if (bytes < LONG) {
      CALL(ape_route_apply());
    } else {
      expect_refusal(APE_ERR_BUSY, "busy");
    }
    CALL(ape_wait_all(1, &request));
    CALL(ape_route_apply());
  }
}

int main(int argc, char** argv) {
  int value = 0;
  FAILS(APE_ERR_STATE, ape_route_get(0, 0, 0, NULL, &value));
  FAILS(APE_ERR_STATE, ape_route_apply());
  CALL(ape_init());
  CALL(ape_rank(&rank));
  CALL(ape_size(&size));
  if (argc > 1 && strcmp(argv[1], "refused") == 0) {
    FAILS(APE_ERR_UNSUPPORTED, ape_route_get(0, size - 1, 0, NULL, &value));
    const int east = APE_PLUS_X;
    CALL(ape_route_add(0, size - 1, 1, &east));
    expect_refusal(APE_ERR_UNSUPPORTED, "refused");
  } else {
    EXPECT(size == RANKS && argc == 3);
    slack_ns = atoll(argv[2]);
    reading();
    longer_ways();
    the_same_routes();
    deadlock();
    bad_routes();
    busy();
  }
  CALL(ape_finalize());
  return 0;
}
