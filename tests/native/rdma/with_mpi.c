/* A sum around a ring by puts, while MPI's messages are under way to the same neighbours. */
#include <ape_rdma.h>
#include <mpi.h>
#include <stdio.h>

static char block[100000];
static int words[2]; /* what comes, what goes */

int main(int argc, char** argv) {
  int rank = 0, size = 0, by_ring = 0, by_mpi = 0;
  ape_rdma_port* port;
  ape_rdma_address address;
  ape_rdma_buffer mine = 0, theirs = 0;
  ape_rdma_event event;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  if (ape_rdma_open(APE_RDMA_ANY_PORT, &port) || ape_rdma_address_of_rank(port, next, &address)) return 1;
  if (ape_rdma_register(port, words, sizeof words) || ape_rdma_publish(port, words, sizeof words[0], &mine))
    return 1;
  MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, before, 1, &theirs, sizeof theirs, MPI_BYTE, next, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Request requests[2];
  MPI_Irecv(block, sizeof block / 2, MPI_CHAR, before, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(block + sizeof block / 2, sizeof block / 2, MPI_CHAR, next, 7, MPI_COMM_WORLD, &requests[1]);
  words[1] = rank;
  for (int step = 0; step < size; ++step) {
    const ape_rdma_segment one = {&words[1], sizeof words[1]};
    by_ring += words[1];
    if (ape_rdma_post_put(port, address, 0, &one, 1, theirs, 0, APE_RDMA_NOTIFY | APE_RDMA_DELIVERED, 3))
      return 1;
    for (int events = 0; events < 2; ++events) {
      if (ape_rdma_wait(port, &event) || event.status != APE_RDMA_OK || event.cookie != 3) return 1;
    }
    words[1] = words[0];
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Allreduce(&rank, &by_mpi, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  printf("sum of ranks by the ring: %d, by MPI: %d\n", by_ring, by_mpi);
  if (ape_rdma_close(port)) return 1;
  MPI_Finalize();
  return 0;
}
