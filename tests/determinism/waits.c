// Exchanges whose waits end in every way: MPI_Waitall over all receives, over some of them, with synchronous
// sends, other requests and collectives among them, over persistent requests, while further receives and
// collectives stay in progress.
// All ranks draw the same cases from the seed in the first argument. Prints a checksum, and the time of each
// rank.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { rounds = 60, partners = 4, most_bytes = 100000, most_requests = 2 * partners + 2 };
static const int sizes[] = {0, 8, 150, 4096, 8, 4096, 150, most_bytes};

static unsigned state = 12345;
static unsigned draw(unsigned below) {
  state = state * 1103515245u + 12345u;
  return (state >> 16) % below;
}

static char outgoing[partners][most_bytes];
static char incoming[partners][most_bytes];
static char early[8];

int main(int argc, char** argv) {
  int rank = 0;
  int size = 0;
  MPI_Init(&argc, &argv);
  if (argc > 1) state = (unsigned)atoi(argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned long sum = 0;
  MPI_Request next = MPI_REQUEST_NULL;  // a receive that is posted one round ahead
  MPI_Irecv(early, 8, MPI_CHAR, (rank + size - 1) % size, 1000, MPI_COMM_WORLD, &next);
  for (int round = 0; round < rounds; ++round) {
    MPI_Request requests[most_requests];
    int count = 0;
    const int bytes = sizes[draw(8)];
    const unsigned how = draw(6);
    const int receives_late = (int)draw(3) == 0;
    const int any_source = (int)draw(4) == 0;
    const int persistent = (how == 0 || how == 3) && draw(2) == 0;
    long one = 1;
    long all = 0;
    MPI_Request collective = MPI_REQUEST_NULL;
    if (how == 4 || how == 5) MPI_Iallreduce(&one, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &collective);
    if (how == 4) {
      requests[count++] = collective;
      collective = MPI_REQUEST_NULL;
    }
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < partners; ++i) {
        const int step = 1 + (int)(i * 3) % (size - 1);
        const int to = (rank + step) % size;
        const int from = (rank + size - step) % size;
        if (half == receives_late) {
          const int source = any_source ? MPI_ANY_SOURCE : from;
          (persistent ? MPI_Recv_init : MPI_Irecv)(incoming[i], most_bytes, MPI_CHAR, source, i,
                                                   MPI_COMM_WORLD, &requests[count++]);
        } else {
          outgoing[i][0] = (char)(rank + round + i);
          if (how == 1 && i == 0) {
            MPI_Issend(outgoing[i], bytes, MPI_CHAR, to, i, MPI_COMM_WORLD, &requests[count++]);
          } else if (how == 2 && i == 1) {
            MPI_Send(outgoing[i], bytes <= 150 ? bytes : 0, MPI_CHAR, to, i, MPI_COMM_WORLD);
          } else {
            (persistent ? MPI_Send_init : MPI_Isend)(outgoing[i], bytes, MPI_CHAR, to, i, MPI_COMM_WORLD,
                                                     &requests[count++]);
          }
        }
      }
    }
    if (persistent && how == 0) MPI_Startall(count, requests);
    for (int i = 0; persistent && how != 0 && i < count; ++i) MPI_Start(&requests[i]);
    const int to_free = persistent ? count : 0;
    MPI_Request ahead = next;
    MPI_Irecv(early, 8, MPI_CHAR, (rank + size - 1) % size, 1001 + round, MPI_COMM_WORLD, &next);
    MPI_Send(outgoing[0], 8, MPI_CHAR, (rank + 1) % size, 1000 + round, MPI_COMM_WORLD);
    requests[count++] = ahead;
    if (how == 3) {
      MPI_Waitall(count / 2, requests, MPI_STATUSES_IGNORE);
      MPI_Waitall(count - count / 2, requests + count / 2, MPI_STATUSES_IGNORE);
    } else {
      MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Wait(&collective, MPI_STATUS_IGNORE);
    for (int i = 0; i < to_free; ++i) MPI_Request_free(&requests[i]);
    sum = sum * 31u + (unsigned char)incoming[rank % partners][0] + (unsigned long)all;
    if (draw(5) == 0) MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Cancel(&next);
  MPI_Request_free(&next);
  for (int i = 0; i < size; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (i == rank) printf("rank %d: %lx at %.9f\n", rank, sum, MPI_Wtime());
  }
  MPI_Finalize();
  return 0;
}
