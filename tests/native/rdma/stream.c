/* All ranks but the first send messages to it: stream COUNT BYTES SLEEP_SECONDS. It sleeps first, and then
 * takes them, in the order of each sender. */
#include <ape_rdma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_ranks = 64 };

static ape_rdma_port* port;

static void check(ape_rdma_status status, const char* call) {
  if (status == APE_RDMA_OK) return;
  fprintf(stderr, "stream: %s: %s\n", call, ape_rdma_strerror(status));
  exit(1);
}

static int rank_of(const ape_rdma_address* addresses, int size, ape_rdma_address address) {
  for (int i = 0; i < size; ++i) {
    if (addresses[i].node == address.node && addresses[i].port == address.port) return i;
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const long count = atol(argv[1]);
  const size_t bytes = (size_t)atol(argv[2]);
  const time_t sleep_s = atol(argv[3]);
  int rank = 0, size = 0;
  ape_rdma_address addresses[most_ranks];
  check(ape_rdma_open(APE_RDMA_ANY_PORT, &port), "ape_rdma_open");
  check(ape_rdma_rank(port, &rank, &size), "ape_rdma_rank");
  for (int i = 0; i < size; ++i)
    check(ape_rdma_address_of_rank(port, i, &addresses[i]), "ape_rdma_address_of_rank");
  char* memory = calloc(1, bytes);
  check(ape_rdma_register(port, memory, bytes), "ape_rdma_register");
  for (int64_t i = 0; rank > 0 && i < count; ++i) {
    const ape_rdma_segment all = {memory, bytes};
    memcpy(memory, &i, sizeof i);
    check(ape_rdma_post_send(port, addresses[0], 0, &all, 1, 0, (uint64_t)i), "ape_rdma_post_send");
  }
  int64_t next[most_ranks] = {0}, wrong = 0;
  ape_rdma_event event;
  if (rank == 0) {
    nanosleep(&(struct timespec){.tv_sec = sleep_s}, NULL);
    for (long i = 0; i < count * (size - 1); ++i) {
      int64_t number = -1;
      check(ape_rdma_wait(port, &event), "ape_rdma_wait");
      check(ape_rdma_read_message(port, memory, bytes), "ape_rdma_read_message");
      memcpy(&number, memory, sizeof number);
      const int64_t wanted = next[rank_of(addresses, size, event.source)]++;
      wrong += number != wanted || event.cookie != (uint64_t)wanted || event.bytes != bytes;
    }
    wrong += ape_rdma_wait_for(port, 100, &event) != APE_RDMA_NOT_YET;
    printf("%ld messages, %ld wrong\n", count * (size - 1), (long)wrong);
  }
  check(ape_rdma_close(port), "ape_rdma_close");
  return wrong == 0 ? 0 : 1;
}
