/* Two ranks pass memory of their GPUs to and fro by puts, and get some: gpu BYTES [staged|host]. `staged`:
 * the card does not reach the GPUs. `host`: memory of the host instead. Prints half a round trip, and the
 * time of a get of the other's host memory. */
#include <ape_rdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apenet_gpu.h"

enum { warm_up = 2, rounds = 20 };

enum { gpu_buffer, host_buffer, buffer_count };

static ape_rdma_port* port;
static ape_rdma_address other;
static ape_rdma_buffer theirs[buffer_count];

static void check(ape_rdma_status status, const char* call) {
  if (status == APE_RDMA_OK) return;
  fprintf(stderr, "gpu: %s: %s\n", call, ape_rdma_strerror(status));
  exit(1);
}

static void await(ape_rdma_kind kind) {
  ape_rdma_event event;
  check(ape_rdma_wait(port, &event), "ape_rdma_wait");
  check(event.status, "event");
  if (event.kind != kind) exit(1);
}

static void put(void* memory, size_t bytes, unsigned flags) {
  const ape_rdma_segment all = {memory, bytes};
  check(ape_rdma_post_put(port, other, 0, &all, 1, theirs[gpu_buffer], 0, flags | APE_RDMA_NOTIFY, 2),
        "ape_rdma_post_put");
}

static ape_rdma_status get(void* memory, size_t bytes, ape_rdma_buffer buffer) {
  const ape_rdma_segment all = {memory, bytes};
  ape_rdma_event event;
  check(ape_rdma_post_get(port, other, 0, &all, 1, buffer, 0, 3), "ape_rdma_post_get");
  check(ape_rdma_wait(port, &event), "ape_rdma_wait");
  if (event.kind != APE_RDMA_GET_DONE) exit(1);
  return event.status;
}

static void* new_memory(size_t bytes, int in_host) {
  void* memory = in_host ? aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : ape_gpu_malloc(bytes);
  if (memory == NULL) {
    fprintf(stderr, "gpu: no GPU\n");
    exit(3);
  }
  memset(memory, 0, bytes);
  check(ape_rdma_register(port, memory, bytes), "ape_rdma_register");
  return memory;
}

static unsigned char byte_of(int rank, size_t at) {
  return (unsigned char)(at * 7 + (at >> 8) + (size_t)rank);
}
static int count_wrong(const void* memory, size_t bytes, int rank) {
  int wrong = 0;
  for (size_t i = 0; i < bytes; ++i) wrong += ((const unsigned char*)memory)[i] != byte_of(rank, i);
  return wrong;
}

static double now_us(void) {
  double time_us = 0;
  check(ape_rdma_time_us(port, &time_us), "ape_rdma_time_us");
  return time_us;
}

/* Nobody would copy at the target. */
static int count_unrefused(void* memory, size_t bytes) {
  const ape_rdma_segment list[2] = {{memory, bytes / 2}, {memory, bytes / 2}};
  const ape_rdma_buffer buffer = theirs[gpu_buffer];
  const unsigned flags = APE_RDMA_REMOTE_GPU | APE_RDMA_NOTIFY;
  return (ape_rdma_post_put(port, other, 0, list, 1, buffer, 0, APE_RDMA_REMOTE_GPU, 4) !=
          APE_RDMA_NO_GPU_ACCESS) +
         (ape_rdma_post_put(port, other, 0, list, 2, buffer, 0, flags, 4) != APE_RDMA_NO_GPU_ACCESS);
}

int main(int argc, char** argv) {
  const size_t bytes = argc > 1 ? (size_t)atol(argv[1]) : 4096;
  const int is_staged = argc > 2 && strcmp(argv[2], "staged") == 0;
  const int in_host = argc > 2 && strcmp(argv[2], "host") == 0;
  int rank = 0;
  check(ape_rdma_open(APE_RDMA_ANY_PORT, &port), "ape_rdma_open");
  check(ape_rdma_rank(port, &rank, NULL), "ape_rdma_rank");
  check(ape_rdma_address_of_rank(port, 1 - rank, &other), "ape_rdma_address_of_rank");
  char* host = new_memory(bytes, 1);
  char* outgoing = new_memory(bytes, in_host);
  char* incoming = new_memory(bytes, in_host);
  char* fetched = new_memory(bytes, in_host);
  ape_rdma_buffer* mine = new_memory(sizeof theirs, 1);
  check(ape_rdma_publish(port, incoming, bytes, &mine[gpu_buffer]), "ape_rdma_publish");
  check(ape_rdma_publish(port, host, bytes, &mine[host_buffer]), "ape_rdma_publish");
  for (size_t i = 0; i < bytes; ++i) host[i] = (char)byte_of(rank, i);
  if (in_host)
    memcpy(outgoing, host, bytes);
  else
    ape_gpu_memcpy(outgoing, host, bytes);
  const ape_rdma_segment names = {mine, sizeof theirs};
  check(ape_rdma_post_send(port, other, 0, &names, 1, 0, 1), "ape_rdma_post_send");
  await(APE_RDMA_RX_DONE);
  check(ape_rdma_read_message(port, theirs, sizeof theirs), "ape_rdma_read_message");
  double begin_us = 0;
  for (int i = 0; i < warm_up + rounds; ++i) {
    if (i == warm_up) begin_us = now_us();
    if (rank == 1) await(APE_RDMA_RX_DONE);
    put(outgoing, bytes, in_host ? 0 : APE_RDMA_REMOTE_GPU);
    if (rank == 0) await(APE_RDMA_RX_DONE);
  }
  const double put_us = (now_us() - begin_us) / rounds / 2;
  int wrong = count_wrong(incoming, bytes, 1 - rank);
  /* The gets of one rank after those of the other. */
  if (rank == 1) await(APE_RDMA_RX_DONE);
  begin_us = now_us();
  check(get(fetched, bytes, theirs[host_buffer]), "a get of host memory");
  const double get_us = now_us() - begin_us;
  wrong += count_wrong(fetched, bytes, 1 - rank);
  /* What came from here comes back. */
  memset(fetched, 0, bytes);
  const ape_rdma_status of_gpu = get(fetched, bytes, theirs[gpu_buffer]);
  wrong +=
      is_staged ? of_gpu != APE_RDMA_BAD_BUFFER : of_gpu != APE_RDMA_OK || count_wrong(fetched, bytes, rank);
  if (is_staged) wrong += count_unrefused(outgoing, bytes);
  check(ape_rdma_post_send(port, other, 0, &names, 1, 0, 1), "ape_rdma_post_send");
  if (rank == 0) await(APE_RDMA_RX_DONE);
  check(ape_rdma_close(port), "ape_rdma_close");
  if (rank == 0) printf("%.6f us, get %.6f us, %d wrong\n", put_us, get_us, wrong);
  return wrong != 0;
}
