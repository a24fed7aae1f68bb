// Every function of apelib.h, with any number of ranks: prints one line for each part, and a sum of all
// results at the end, the same in virtual and in real time.
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "checks.h"

enum { LONG = 300000 };

static int rank, size;
static double digest;

static void done(const char* part) {
  CALL(ape_barrier());
  if (rank == 0) printf("%s\n", part);
}

static unsigned char byte_of(int from, size_t place) {
  return (unsigned char)(31 * from + 7 * place + place / 251);
}

static unsigned char* filled(int from, size_t bytes) {
  unsigned char* data = malloc(bytes + 1);
  for (size_t i = 0; i < bytes; ++i) data[i] = byte_of(from, i);
  return data;
}

static void expect_bytes(const unsigned char* data, int from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) EXPECT(data[i] == byte_of(from, i));
}

static void before_init(void) {
  int value = 0;
  ape_request request = APE_NO_REQUEST;
  FAILS(APE_ERR_STATE, ape_rank(&value));
  FAILS(APE_ERR_STATE, ape_send(&value, 1, 0, 0, APE_AUTO));
  FAILS(APE_ERR_STATE, ape_wait(&request, NULL));
  FAILS(APE_ERR_STATE, ape_barrier());
  FAILS(APE_ERR_STATE, ape_finalize());
  EXPECT(strlen(ape_last_error()) > 0);
  for (int code = -1; code <= APE_ERR_UNSUPPORTED + 1; ++code) EXPECT(strlen(ape_strerror(code)) > 0);
}

static void torus(void) {
  int count = 0;
  int dims[APE_MAX_DIMS];
  CALL(ape_dims(&count, dims));
  EXPECT(count >= 3 && count <= APE_MAX_DIMS);
  int product = 1;
  for (int d = 0; d < APE_MAX_DIMS; ++d) product *= dims[d];
  EXPECT(product == size);
  for (int other = 0; other < size; ++other) {
    int at[APE_MAX_DIMS];
    int back = -1;
    CALL(ape_coords(other, at));
    CALL(ape_rank_at(at, &back));
    EXPECT(back == other);
  }
  int here[APE_MAX_DIMS];
  CALL(ape_coords(rank, here));
  for (int d = 0; d < count; ++d) {
    for (int sign = 0; sign < 2; ++sign) {
      int there[APE_MAX_DIMS];
      int neighbor = -1;
      CALL(ape_neighbor(2 * d + sign, &neighbor));
      CALL(ape_coords(neighbor, there));
      for (int e = 0; e < APE_MAX_DIMS; ++e) {
        const int step = e != d ? 0 : sign == 0 ? 1 : dims[d] - 1;
        EXPECT(there[e] == (here[e] + step) % dims[e]);
      }
    }
  }
  int outside[APE_MAX_DIMS] = {0};
  int value = 0;
  FAILS(APE_ERR_DIRECTION, ape_neighbor(-1, &value));
  FAILS(APE_ERR_DIRECTION, ape_neighbor(2 * count, &value));
  FAILS(APE_ERR_RANK, ape_coords(size, outside));
  outside[0] = dims[0];
  FAILS(APE_ERR_COORDINATES, ape_rank_at(outside, &value));
  outside[0] = -1;
  FAILS(APE_ERR_COORDINATES, ape_rank_at(outside, &value));
  FAILS(APE_ERR_ARGUMENT, ape_dims(NULL, dims));
  done("torus");
}

// Around the ring, with each pair of ways of the two sides.
static void messages(void) {
  static const size_t sizes[] = {0, 1, 17, 168, 169, 192, 1000, 4096, 4097, 70000, LONG};
  const int up = (rank + 1) % size;
  const int down = (rank + size - 1) % size;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    for (int way = 0; way < 9; ++way) {
      unsigned char* out = filled(rank, sizes[s]);
      unsigned char* in = calloc(1, sizes[s] + 1);
      ape_request requests[2];
      size_t received = 99;
      if (way % 2 == 0) CALL(ape_irecv(in, sizes[s], down, way, way / 3, &requests[0]));
      CALL(ape_isend(out, sizes[s], up, way, way % 3, &requests[1]));
      if (way % 3 == APE_COPIED) memset(out, 0, sizes[s]);
      if (way % 2 != 0) CALL(ape_irecv(in, sizes[s], down, way, way / 3, &requests[0]));
      CALL(ape_wait(&requests[1], NULL));
      CALL(ape_wait(&requests[0], &received));
      EXPECT(requests[0] == APE_NO_REQUEST && requests[1] == APE_NO_REQUEST);
      EXPECT(received == sizes[s]);
      expect_bytes(in, down, sizes[s]);
      EXPECT(in[sizes[s]] == 0);
      free(out);
      free(in);
    }
  }
  done("messages");
}

static void blocking(void) {
  double out = rank + 0.5;
  double in = 0;
  const int partner = rank ^ 1;
  if (partner < size) {
    if (rank % 2 == 0) {
      CALL(ape_send(&out, sizeof out, partner, 3, APE_AUTO));
      CALL(ape_recv(&in, sizeof in, partner, 3, APE_ZERO_COPY));
    } else {
      CALL(ape_recv(&in, sizeof in, partner, 3, APE_COPIED));
      CALL(ape_send(&out, sizeof out, partner, 3, APE_ZERO_COPY));
    }
    EXPECT(in == partner + 0.5);
  }
  unsigned char* data = filled(rank, LONG);
  unsigned char* got = calloc(1, LONG);
  for (int how = APE_AUTO; how <= APE_COPIED; ++how) {
    const int up = (rank + 1) % size;
    const int down = (rank + size - 1) % size;
    CALL(ape_sendrecv(data, LONG, up, got, LONG, down, 0, how));
    expect_bytes(got, down, LONG);
  }
  free(data);
  free(got);
  done("blocking");
}

// Tags are matched, and messages with one tag keep their order.
static void order(void) {
  enum { COUNT = 40 };
  int out[COUNT];
  int in[COUNT];
  ape_request sends[COUNT];
  ape_request receives[COUNT];
  const int up = (rank + 1) % size;
  const int down = (rank + size - 1) % size;
  for (int i = 0; i < COUNT; ++i) {
    out[i] = 1000 * rank + i;
    CALL(ape_isend(&out[i], sizeof(int), up, i % 3, APE_AUTO, &sends[i]));
  }
  for (int i = COUNT - 1; i >= 0; --i)
    CALL(ape_irecv(&in[i], sizeof(int), down, i % 3, APE_AUTO, &receives[i]));
  CALL(ape_wait_all(COUNT, receives));
  CALL(ape_wait_all(COUNT, sends));
  for (int i = 0; i < COUNT; ++i) {
    // The receives were posted in the opposite order.
    const int first = i % 3;
    const int last = COUNT - 1 - (COUNT - 1 - first) % 3;
    EXPECT(in[i] == 1000 * down + first + last - i);
  }
  done("order");
}

static void any_and_all(void) {
  enum { COUNT = 6 };
  int in[COUNT];
  int out[COUNT];
  ape_request receives[COUNT];
  ape_request sends[COUNT];
  const int up = (rank + 1) % size;
  const int down = (rank + size - 1) % size;
  int flag = 7;
  int which = 7;
  size_t received = 0;
  CALL(ape_wait_any(0, NULL, &which, NULL));
  EXPECT(which == -1);
  for (int i = 0; i < COUNT; ++i) CALL(ape_irecv(&in[i], sizeof(int), down, i, APE_AUTO, &receives[i]));
  if (size > 1) {
    CALL(ape_test(&receives[0], &flag, NULL));
    CALL(ape_barrier());
  }
  for (int i = 0; i < COUNT; ++i) {
    out[i] = rank * 100 + i;
    CALL(ape_isend(&out[i], sizeof(int), up, i, APE_AUTO, &sends[i]));
  }
  int seen = 0;
  for (int i = 0; i < COUNT; ++i) {
    CALL(ape_wait_any(COUNT, receives, &which, &received));
    EXPECT(which >= 0 && which < COUNT && receives[which] == APE_NO_REQUEST && received == sizeof(int));
    EXPECT(in[which] == down * 100 + which);
    seen |= 1 << which;
  }
  EXPECT(seen == (1 << COUNT) - 1);
  CALL(ape_wait_any(COUNT, receives, &which, NULL));
  EXPECT(which == -1);
  flag = 0;
  while (!flag) CALL(ape_test_all(COUNT, sends, &flag));
  EXPECT(sends[0] == APE_NO_REQUEST);
  CALL(ape_test_all(COUNT, sends, &flag));
  EXPECT(flag == 1);
  // With test and test_any.
  CALL(ape_irecv(&in[0], sizeof(int), down, 0, APE_AUTO, &receives[0]));
  CALL(ape_irecv(&in[1], sizeof(int), down, 1, APE_AUTO, &receives[1]));
  CALL(ape_isend(&out[1], sizeof(int), up, 1, APE_AUTO, &sends[1]));
  CALL(ape_isend(&out[0], sizeof(int), up, 0, APE_AUTO, &sends[0]));
  which = -1;
  while (which < 0) CALL(ape_test_any(2, receives, &which, &received));
  const int other = 1 - which;
  flag = 0;
  while (!flag) CALL(ape_test(&receives[other], &flag, &received));
  EXPECT(received == sizeof(int) && in[0] == down * 100 && in[1] == down * 100 + 1);
  CALL(ape_wait_all(2, sends));
  CALL(ape_wait_all(0, NULL));
  done("any and all");
}

static void collectives(void) {
  for (int root = 0; root < size; ++root) {
    for (size_t bytes = 0; bytes < 30000; bytes = 3 * bytes + 1) {
      unsigned char* data = rank == root ? filled(root, bytes) : calloc(1, bytes + 1);
      CALL(ape_broadcast(data, bytes, root));
      expect_bytes(data, root, bytes);
      free(data);
      unsigned char* mine = filled(rank, bytes);
      unsigned char* all = calloc((size_t)size, bytes + 1);
      CALL(ape_gather(mine, bytes, rank == root ? all : NULL, root));
      for (int from = 0; rank == root && from < size; ++from)
        expect_bytes(all + (size_t)from * bytes, from, bytes);
      free(mine);
      free(all);
    }
  }
  double sums[3] = {rank + 1, 1e16 / (rank + 3), 0.1 * rank};
  CALL(ape_sum(sums, 3, APE_DOUBLE));
  EXPECT(sums[0] == size * (size + 1) / 2.0);
  // The same bits on all ranks.
  double copy[3];
  memcpy(copy, sums, sizeof copy);
  CALL(ape_broadcast(copy, sizeof copy, size - 1));
  EXPECT(memcmp(copy, sums, sizeof copy) == 0);
  digest += sums[1] + sums[2];
  float floats[2] = {0.5F * (float)rank, 1};
  CALL(ape_sum(floats, 2, APE_FLOAT));
  EXPECT(floats[0] == 0.25F * (float)(size * (size - 1)) && floats[1] == (float)size);
  int64_t whole[2] = {rank, INT64_C(1) << 40};
  CALL(ape_sum(whole, 2, APE_INT64));
  EXPECT(whole[0] == size * (size - 1) / 2 && whole[1] == size * (INT64_C(1) << 40));
  double complex phases[2] = {rank + 1.0 - 2.0 * rank * I, 1};
  CALL(ape_sum(phases, 2, APE_DOUBLE_COMPLEX));
  EXPECT(creal(phases[0]) == size * (size + 1) / 2.0 && cimag(phases[0]) == -size * (size - 1));
  double ends[2] = {rank, -rank};
  CALL(ape_min(ends, 2, APE_DOUBLE));
  EXPECT(ends[0] == 0 && ends[1] == 1 - size);
  float high[1] = {(float)rank};
  CALL(ape_max(high, 1, APE_FLOAT));
  EXPECT(high[0] == (float)(size - 1));
  int64_t low[1] = {-rank};
  CALL(ape_min(low, 1, APE_INT64));
  EXPECT(low[0] == 1 - size);
  CALL(ape_sum(NULL, 0, APE_DOUBLE));
  double* many = malloc(5000 * sizeof *many);
  for (int i = 0; i < 5000; ++i) many[i] = i + rank;
  CALL(ape_sum(many, 5000, APE_DOUBLE));
  for (int i = 0; i < 5000; ++i) EXPECT(many[i] == (double)size * i + size * (size - 1) / 2.0);
  free(many);
  done("collectives");
}

static void halos(void) {
  static const size_t sizes[] = {0, 8, 512, 4096, 9000, 100000};
  int count = 0;
  int dims[APE_MAX_DIMS];
  CALL(ape_dims(&count, dims));
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    ape_halo halo = APE_NO_HALO;
    unsigned char* out[2 * APE_MAX_DIMS];
    unsigned char* in[2 * APE_MAX_DIMS];
    CALL(ape_halo_create(&halo));
    for (int d = 0; d < 2 * count; ++d) {
      out[d] = filled(rank + d, sizes[s]);
      in[d] = calloc(1, sizes[s] + 1);
      CALL(ape_halo_face(halo, d, out[d], in[d], sizes[s]));
    }
    for (int round = 0; round < 4; ++round) {
      for (int d = 0; d < 2 * count; ++d) memset(in[d], 0, sizes[s]);
      CALL(ape_halo_start(halo));
      FAILS(APE_ERR_BUSY, ape_halo_start(halo));
      FAILS(APE_ERR_BUSY, ape_halo_free(&halo));
      FAILS(APE_ERR_BUSY, ape_halo_face(halo, 0, NULL, NULL, 0));
      int ended = round % 2;
      if (ended) CALL(ape_halo_wait(halo));
      while (!ended) CALL(ape_halo_test(halo, &ended));
      for (int d = 0; d < 2 * count; ++d) {
        int neighbor = -1;
        CALL(ape_neighbor(d, &neighbor));
        expect_bytes(in[d], neighbor + (d ^ 1), sizes[s]);
      }
      FAILS(APE_ERR_IDLE, ape_halo_wait(halo));
      // The neighbour's next start must not meet this one's clearing of memory.
      CALL(ape_barrier());
    }
    const ape_halo freed = halo;
    CALL(ape_halo_free(&halo));
    EXPECT(halo == APE_NO_HALO);
    FAILS(APE_ERR_HALO, ape_halo_start(freed));
    FAILS(APE_ERR_HALO, ape_halo_free(&halo));
    for (int d = 0; d < 2 * count; ++d) {
      free(out[d]);
      free(in[d]);
    }
  }
  done("halos");
}

static void misuse(void) {
  char byte = 1;
  int value = 0;
  ape_request request = APE_NO_REQUEST;
  FAILS(APE_ERR_STATE, ape_init());
  FAILS(APE_ERR_RANK, ape_send(&byte, 1, size, 0, APE_AUTO));
  FAILS(APE_ERR_RANK, ape_recv(&byte, 1, -1, 0, APE_AUTO));
  FAILS(APE_ERR_RANK, ape_broadcast(&byte, 1, size));
  FAILS(APE_ERR_RANK, ape_gather(&byte, 1, &byte, -1));
  FAILS(APE_ERR_TAG, ape_send(&byte, 1, 0, -1, APE_AUTO));
  FAILS(APE_ERR_HOW, ape_send(&byte, 1, 0, 0, 3));
  FAILS(APE_ERR_HOW, ape_irecv(&byte, 1, 0, 0, -1, &request));
  FAILS(APE_ERR_ARGUMENT, ape_send(NULL, 1, 0, 0, APE_AUTO));
  FAILS(APE_ERR_ARGUMENT, ape_isend(&byte, 1, 0, 0, APE_AUTO, NULL));
  FAILS(APE_ERR_ARGUMENT, ape_rank(NULL));
  FAILS(APE_ERR_ARGUMENT, ape_sum(NULL, 1, APE_DOUBLE));
  FAILS(APE_ERR_OVERSIZE, ape_isend(&byte, SIZE_MAX, 0, 0, APE_AUTO, &request));
  FAILS(APE_ERR_OVERSIZE, ape_sum(&byte, SIZE_MAX, APE_DOUBLE));
  FAILS(APE_ERR_TYPE, ape_sum(&byte, 1, 4));
  FAILS(APE_ERR_TYPE, ape_max(&byte, 1, -1));
  FAILS(APE_ERR_TYPE, ape_min(&byte, 1, APE_DOUBLE_COMPLEX));
  FAILS(APE_ERR_HALO, ape_halo_face(APE_NO_HALO, 0, NULL, NULL, 0));
  ape_halo halo = APE_NO_HALO;
  CALL(ape_halo_create(&halo));
  FAILS(APE_ERR_DIRECTION, ape_halo_face(halo, 2 * APE_MAX_DIMS, NULL, NULL, 0));
  FAILS(APE_ERR_ARGUMENT, ape_halo_face(halo, 0, &byte, NULL, 1));
  CALL(ape_halo_free(&halo));
  FAILS(APE_ERR_HALO, ape_halo_wait(12345));
  FAILS(APE_ERR_REQUEST, ape_wait(&request, NULL));
  FAILS(APE_ERR_ARGUMENT, ape_wait_all(-1, NULL));
  FAILS(APE_ERR_ARGUMENT, ape_wait_all(1, NULL));
  EXPECT(request == APE_NO_REQUEST);
  // A request ends once.
  CALL(ape_isend(&byte, 1, rank, 5, APE_AUTO, &request));
  ape_request again = request;
  FAILS(APE_ERR_BUSY, ape_finalize());
  char got = 0;
  CALL(ape_recv(&got, 1, rank, 5, APE_AUTO));
  CALL(ape_wait(&request, NULL));
  FAILS(APE_ERR_REQUEST, ape_wait(&again, NULL));
  FAILS(APE_ERR_REQUEST, ape_test(&again, &value, NULL));
  FAILS(APE_ERR_REQUEST, ape_wait_all(1, &again));
  again = UINT64_MAX;
  FAILS(APE_ERR_REQUEST, ape_wait_any(1, &again, &value, NULL));
  done("misuse");
}

// The buffer holds the beginning, nothing is written behind it, and later messages come through.
static void truncation(void) {
  static const size_t sizes[] = {10, 1000, 4096, 50000, LONG};
  const int up = (rank + 1) % size;
  const int down = (rank + size - 1) % size;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    for (int how = APE_AUTO; how <= APE_COPIED; ++how) {
      const size_t room = sizes[s] / 2;
      unsigned char* out = filled(rank, sizes[s]);
      unsigned char* in = calloc(1, sizes[s]);
      ape_request receive;
      ape_request send;
      size_t received = 0;
      CALL(ape_irecv(in, room, down, 1, how, &receive));
      CALL(ape_isend(out, sizes[s], up, 1, how, &send));
      FAILS(APE_ERR_TRUNCATED, ape_wait(&receive, &received));
      CALL(ape_wait(&send, NULL));
      EXPECT(received == room && receive == APE_NO_REQUEST);
      expect_bytes(in, down, room);
      for (size_t i = room; i < sizes[s]; ++i) EXPECT(in[i] == 0);
      CALL(ape_sendrecv(out, sizes[s], up, in, sizes[s], down, 1, how));
      expect_bytes(in, down, sizes[s]);
      free(out);
      free(in);
    }
  }
  done("truncation");
}

int main(void) {
  before_init();
  CALL(ape_init());
  CALL(ape_rank(&rank));
  CALL(ape_size(&size));
  EXPECT(rank >= 0 && rank < size);
  torus();
  messages();
  blocking();
  order();
  any_and_all();
  collectives();
  halos();
  misuse();
  truncation();
  CALL(ape_sum(&digest, 1, APE_DOUBLE));
  if (rank == 0) printf("%d ranks: %.17g\n", size, digest);
  CALL(ape_finalize());
  int value = 0;
  FAILS(APE_ERR_FINALIZED, ape_rank(&value));
  FAILS(APE_ERR_FINALIZED, ape_barrier());
  FAILS(APE_ERR_FINALIZED, ape_finalize());
  FAILS(APE_ERR_FINALIZED, ape_init());
  return 0;
}
