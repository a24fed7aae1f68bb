/* mpi_and_velo: MPI and VELO in one process, in turns and at once: while one library waits, the other's
 * messages come. */
#include <mpi.h>
#include <string.h>

#include "velo_common.h"

enum { rounds = 200 };

int main(int argc, char** argv) {
  int rank;
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  velo2_port_t port;
  velo2_connection_t right;
  check(velo2_open(&port), "velo2_open");
  MPI_Barrier(MPI_COMM_WORLD);
  check(velo2_connect(&port, &right, (velo2_nodeid_t)((rank + 1) % size), 0), "velo2_connect");
  const int left = (rank + size - 1) % size;
  long sum = 0;
  for (int round = 0; round < rounds; ++round) {
    int out[300];
    int in[300];
    for (int i = 0; i < 300; ++i) out[i] = round + i;
    MPI_Request requests[2];
    check(velo2_send(&right, &round, sizeof round, (uint8_t)rank, 0), "velo2_send");
    MPI_Irecv(in, 300, MPI_INT, left, round, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 300, MPI_INT, (rank + 1) % size, round, MPI_COMM_WORLD, &requests[1]);
    if (round % 2 == 0) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    int got = -1;
    uint32_t length;
    uint32_t source;
    uint8_t tag;
    check(velo2_recv(&port, &got, sizeof got, &length, &source, &tag, 0), "velo2_recv");
    if (round % 2 == 1) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (got != round || source != (uint32_t)left || memcmp(in, out, sizeof in) != 0) {
      fprintf(stderr, "rank %d, round %d: %d from %u\n", rank, round, got, source);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    sum += got;
  }
  long total;
  MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  check(velo2_close(&port), "velo2_close");
  if (rank == 0 && total == (long)size * rounds * (rounds - 1) / 2) puts("passed");
  MPI_Finalize();
  return 0;
}
