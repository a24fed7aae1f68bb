/* Every call of ape_udp.h and its misuse, between all processes. */
#include <ape_udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                     \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "conformance.c:%d: failed: %s\n", __LINE__, #condition); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { lengths = 5 };
static const size_t sizes[lengths] = {0, 1, 1472, 5000, APE_UDP_MAX_BYTES};

static ape_udp* udp;
static int rank, count;
static unsigned char data[APE_UDP_MAX_BYTES], taken[APE_UDP_MAX_BYTES];

static void fill(int source, int number) {
  for (size_t i = 0; i < sizes[number]; ++i)
    data[i] = (unsigned char)(i * 7 + (size_t)(source * 31 + number));
}

static void misuse(void) {
  ape_udp* second;
  REQUIRE(ape_udp_open(&second) == APE_UDP_IS_OPEN);
  REQUIRE(ape_udp_open(NULL) == APE_UDP_BAD_ADDRESS);
  REQUIRE(ape_udp_close(NULL) == APE_UDP_BAD_ADDRESS);
  REQUIRE(ape_udp_send(NULL, 0, data, 1) == APE_UDP_BAD_ADDRESS);
  REQUIRE(ape_udp_send(udp, -1, data, 1) == APE_UDP_BAD_RANK);
  REQUIRE(ape_udp_send(udp, count, data, 1) == APE_UDP_BAD_RANK);
  REQUIRE(ape_udp_send(udp, 0, data, APE_UDP_MAX_BYTES + 1) == APE_UDP_BAD_SIZE);
  REQUIRE(ape_udp_send(udp, 0, NULL, 1) == APE_UDP_BAD_ADDRESS);
  REQUIRE(ape_udp_receive(udp, NULL, 1, NULL, NULL) == APE_UDP_BAD_ADDRESS);
  REQUIRE(ape_udp_poll(udp, NULL, 1, NULL, NULL) == APE_UDP_BAD_ADDRESS);
  REQUIRE(strcmp(ape_udp_strerror(APE_UDP_OK), "success") == 0);
  REQUIRE(ape_udp_strerror((ape_udp_status)99) != NULL);
}

/* Each process sends to all, itself included: from each they come in order. */
static void exchange(void) {
  int expected[64] = {0};
  for (int number = 0; number < lengths; ++number) {
    fill(rank, number);
    for (int target = 0; target < count; ++target)
      REQUIRE(ape_udp_send(udp, target, data, sizes[number]) == APE_UDP_OK);
  }
  for (int left = lengths * count; left > 0; --left) {
    size_t bytes;
    int source;
    const ape_udp_status status = left % 2 ? ape_udp_receive(udp, taken, sizeof taken, &bytes, &source)
                                           : ape_udp_poll(udp, taken, sizeof taken, &bytes, &source);
    if (status == APE_UDP_NOT_YET) {
      ++left;
      continue;
    }
    REQUIRE(status == APE_UDP_OK);
    const int number = expected[source]++;
    REQUIRE(number < lengths && bytes == sizes[number]);
    fill(source, number);
    REQUIRE(memcmp(data, taken, bytes) == 0);
  }
  REQUIRE(ape_udp_poll(udp, taken, sizeof taken, NULL, NULL) == APE_UDP_NOT_YET);
}

static void truncate_one(void) {
  size_t bytes = 0;
  memcpy(data, "datagram", 8);
  memset(taken, '-', 8);
  REQUIRE(ape_udp_send(udp, rank, data, 8) == APE_UDP_OK);
  REQUIRE(ape_udp_receive(udp, taken, 4, &bytes, NULL) == APE_UDP_TRUNCATED);
  REQUIRE(bytes == 8 && memcmp(taken, "data----", 8) == 0);
  REQUIRE(ape_udp_poll(udp, taken, sizeof taken, NULL, NULL) == APE_UDP_NOT_YET);
}

int main(void) {
  const ape_udp_status status = ape_udp_open(&udp);
  if (status != APE_UDP_OK) {
    fprintf(stderr, "ape_udp_open: %s\n", ape_udp_strerror(status));
    return 3;
  }
  REQUIRE(ape_udp_rank(udp, &rank, &count) == APE_UDP_OK);
  REQUIRE(ape_udp_rank(udp, NULL, NULL) == APE_UDP_OK &&
          ape_udp_rank(NULL, NULL, NULL) == APE_UDP_BAD_ADDRESS);
  misuse();
  exchange();
  truncate_one();
  REQUIRE(ape_udp_close(udp) == APE_UDP_OK);
  printf("rank %d of %d: done\n", rank, count);
  return 0;
}
