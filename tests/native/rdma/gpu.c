/* Two ranks pass memory of their GPUs to and fro by puts, and one gets it: gpu BYTES. Prints half a round
 * trip. */
#include <ape_rdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apenet_gpu.h"

enum { warm_up = 2, rounds = 20 };

static ape_rdma_port* port;
static ape_rdma_address other;
static ape_rdma_buffer theirs;

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
  check(ape_rdma_post_put(port, other, 0, &all, 1, theirs, 0, flags | APE_RDMA_NOTIFY, 2),
        "ape_rdma_post_put");
}

int main(int argc, char** argv) {
  const size_t bytes = argc > 1 ? (size_t)atol(argv[1]) : 4096;
  int rank = 0;
  double begin_us = 0, end_us = 0;
  ape_rdma_buffer mine = 0;
  check(ape_rdma_open(APE_RDMA_ANY_PORT, &port), "ape_rdma_open");
  check(ape_rdma_rank(port, &rank, NULL), "ape_rdma_rank");
  check(ape_rdma_address_of_rank(port, 1 - rank, &other), "ape_rdma_address_of_rank");
  char* host = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  char* outgoing = ape_gpu_malloc(bytes);
  char* incoming = ape_gpu_malloc(bytes);
  char* fetched = ape_gpu_malloc(bytes);
  if (outgoing == NULL || incoming == NULL || fetched == NULL) {
    fprintf(stderr, "gpu: no GPU\n");
    return 3;
  }
  check(ape_rdma_register(port, host, bytes), "ape_rdma_register");
  check(ape_rdma_register(port, outgoing, bytes), "ape_rdma_register");
  check(ape_rdma_register(port, incoming, bytes), "ape_rdma_register");
  check(ape_rdma_register(port, fetched, bytes), "ape_rdma_register");
  check(ape_rdma_publish(port, incoming, bytes, &mine), "ape_rdma_publish");
  memcpy(host, &mine, sizeof mine);
  check(ape_rdma_post_send(port, other, 0, &(ape_rdma_segment){host, sizeof mine}, 1, 0, 1),
        "ape_rdma_post_send");
  await(APE_RDMA_RX_DONE);
  check(ape_rdma_read_message(port, &theirs, sizeof theirs), "ape_rdma_read_message");
  for (size_t i = 0; i < bytes; ++i) host[i] = (char)(i * 7 + (size_t)rank);
  ape_gpu_memcpy(outgoing, host, bytes);
  for (int i = 0; i < warm_up + rounds; ++i) {
    if (i == warm_up) check(ape_rdma_time_us(port, &begin_us), "ape_rdma_time_us");
    if (rank == 1) await(APE_RDMA_RX_DONE);
    put(outgoing, bytes, APE_RDMA_REMOTE_GPU);
    if (rank == 0) await(APE_RDMA_RX_DONE);
  }
  check(ape_rdma_time_us(port, &end_us), "ape_rdma_time_us");
  int wrong = 0;
  ape_gpu_memcpy(host, incoming, bytes);
  for (size_t i = 0; i < bytes; ++i) wrong += host[i] != (char)(i * 7 + (size_t)(1 - rank));
  /* What the other one got from here comes back, into the GPU. */
  const ape_rdma_segment all = {fetched, bytes};
  check(ape_rdma_post_get(port, other, 0, &all, 1, theirs, 0, 3), "ape_rdma_post_get");
  await(APE_RDMA_GET_DONE);
  ape_gpu_memcpy(host, fetched, bytes);
  for (size_t i = 0; i < bytes; ++i) wrong += host[i] != (char)(i * 7 + (size_t)rank);
  check(ape_rdma_close(port), "ape_rdma_close");
  if (rank == 0) printf("%.6f us, %d wrong\n", (end_us - begin_us) / rounds / 2, wrong);
  return wrong != 0;
}
