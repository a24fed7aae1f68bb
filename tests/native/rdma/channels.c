/* Small messages beside floods: channels QUEUE. Ranks 0 and 1 put to rank 2, on queue 0, more than the way
 * from 1 to 2 takes, so the packets of rank 0 fill the way from 0 to 1. Meanwhile rank 0 passes small
 * messages to rank 1 and back, on QUEUE: a number, or cN for virtual channel N. Prints the mean time there
 * and back. */
#include <ape_rdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rounds = 20, flood_bytes = 4 << 20, put_cookie = 1, small_cookie = 2 };

static ape_rdma_port* port;

static void check(ape_rdma_status status, const char* call) {
  if (status == APE_RDMA_OK) return;
  fprintf(stderr, "channels: %s: %s\n", call, ape_rdma_strerror(status));
  exit(1);
}

static ape_rdma_address address_of(int rank) {
  ape_rdma_address address;
  check(ape_rdma_address_of_rank(port, rank, &address), "ape_rdma_address_of_rank");
  return address;
}

static void await(ape_rdma_kind kind, uint64_t cookie) {
  ape_rdma_event event;
  do check(ape_rdma_wait(port, &event), "ape_rdma_wait");
  while (event.kind != kind || event.cookie != cookie);
}

static void send(int target, int queue, void* memory, size_t bytes) {
  const ape_rdma_segment all = {memory, bytes};
  check(ape_rdma_post_send(port, address_of(target), queue, &all, 1, 0, small_cookie), "ape_rdma_post_send");
}

static double now_us(void) {
  double time_us = 0;
  check(ape_rdma_time_us(port, &time_us), "ape_rdma_time_us");
  return time_us;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int queue = argv[1][0] == 'c' ? APE_RDMA_CHANNEL(atoi(argv[1] + 1)) : atoi(argv[1]);
  int rank = 0;
  check(ape_rdma_open(APE_RDMA_ANY_PORT, &port), "ape_rdma_open");
  check(ape_rdma_rank(port, &rank, NULL), "ape_rdma_rank");
  char* memory = calloc(2, flood_bytes);
  check(ape_rdma_register(port, memory, 2 * (size_t)flood_bytes), "ape_rdma_register");
  ape_rdma_buffer buffer = 0;
  if (rank == 2) {
    check(ape_rdma_publish(port, memory, 2 * (size_t)flood_bytes, &buffer), "ape_rdma_publish");
    memcpy(memory, &buffer, sizeof buffer);
    for (int source = 0; source < 2; ++source) send(source, 0, memory, sizeof buffer);
    for (int source = 0; source < 2; ++source) await(APE_RDMA_RX_DONE, put_cookie);
    for (int i = 0; i < 2 * flood_bytes; ++i) {
      if (memory[i] != 1 + i / flood_bytes) return 1;
    }
  } else {
    await(APE_RDMA_RX_DONE, small_cookie);
    check(ape_rdma_read_message(port, &buffer, sizeof buffer), "ape_rdma_read_message");
    memset(memory, rank + 1, flood_bytes);
    const ape_rdma_segment flood = {memory, flood_bytes};
    check(ape_rdma_post_put(port, address_of(2), 0, &flood, 1, buffer, (size_t)rank * flood_bytes,
                            APE_RDMA_NOTIFY | APE_RDMA_DELIVERED, put_cookie),
          "ape_rdma_post_put");
    const double begin_us = now_us();
    for (int i = 0; i < rounds; ++i) {
      if (rank == 1) await(APE_RDMA_RX_DONE, small_cookie);
      send(1 - rank, queue, memory, 8);
      if (rank == 0) await(APE_RDMA_RX_DONE, small_cookie);
    }
    if (rank == 0) printf("%.6f\n", (now_us() - begin_us) / rounds);
  }
  check(ape_rdma_close(port), "ape_rdma_close");
  return 0;
}
