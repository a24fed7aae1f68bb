// Checks every byte and every order: streams of messages of many sizes between partners and from any source,
// and collectives, with contents that depend on sender, number and position.
#include <string.h>

#include "check.h"

enum { most_bytes = 20000, streams = 24, gathered = 12 };

static const int sizes[] = {0, 1, 7, 64, 255, 256, 257, 1000, 4095, 4096, 4097, 9000, most_bytes};
enum { size_count = sizeof sizes / sizeof sizes[0] };

static unsigned char byte_of(int rank, int message, int position) {
  return (unsigned char)((unsigned)(rank * 31 + message * 7 + position) * 2654435761U >> 24U);
}

static void fill(unsigned char* buffer, int bytes, int rank, int message) {
  for (int i = 0; i < bytes; ++i) buffer[i] = byte_of(rank, message, i);
}

static void check_bytes(const unsigned char* buffer, int bytes, int rank, int message) {
  for (int i = 0; i < bytes; ++i) CHECK(buffer[i] == byte_of(rank, message, i));
}

// Around the ring with one tag, so that only the order distinguishes the messages.
static void stream_around(struct World world) {
  static unsigned char out[streams][most_bytes];
  static unsigned char in[streams][most_bytes];
  MPI_Request requests[2 * streams];
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  for (int i = 0; i < streams; ++i) {
    MPI_Irecv(in[i], most_bytes, MPI_BYTE, left, 5, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < streams; ++i) {
    const int bytes = sizes[i % size_count];
    fill(out[i], bytes, world.rank, i);
    MPI_Isend(out[i], bytes, MPI_BYTE, right, 5, MPI_COMM_WORLD, &requests[streams + i]);
  }
  MPI_Status statuses[2 * streams];
  MPI_Waitall(2 * streams, requests, statuses);
  for (int i = 0; i < streams; ++i) {
    int bytes = -1;
    MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
    CHECK(bytes == sizes[i % size_count]);
    check_bytes(in[i], bytes, left, i);
  }
}

// All ranks send to rank 0, which receives from any source: in order for each sender.
static void gather_from_anybody(struct World world) {
  static unsigned char buffer[most_bytes];
  if (world.rank != 0) {
    for (int i = 0; i < gathered; ++i) {
      const int bytes = sizes[(i + world.rank) % size_count];
      fill(buffer, bytes, world.rank, i);
      MPI_Send(buffer, bytes, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
    }
    return;
  }
  int* next = calloc((size_t)world.size, sizeof(int));
  for (int i = 0; i < gathered * (world.size - 1); ++i) {
    MPI_Status status;
    int bytes = -1;
    MPI_Recv(buffer, most_bytes, MPI_BYTE, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    const int message = next[status.MPI_SOURCE]++;
    CHECK(bytes == sizes[(message + status.MPI_SOURCE) % size_count]);
    check_bytes(buffer, bytes, status.MPI_SOURCE, message);
  }
  for (int rank = 1; rank < world.size; ++rank) CHECK(next[rank] == gathered);
  free(next);
}

static void use_collectives(struct World world) {
  enum { ints = 300 };
  const size_t count = (size_t)world.size * ints;
  int* out = malloc(count * sizeof(int));
  int* in = malloc(count * sizeof(int));
  for (int rank = 0; rank < world.size; ++rank) {
    for (int i = 0; i < ints; ++i) out[rank * ints + i] = pattern(world.rank, rank, i);
  }
  MPI_Alltoall(out, ints, MPI_INT, in, ints, MPI_INT, MPI_COMM_WORLD);
  for (int rank = 0; rank < world.size; ++rank) {
    for (int i = 0; i < ints; ++i) CHECK(in[rank * ints + i] == pattern(rank, world.rank, i));
  }
  for (int i = 0; i < ints; ++i) out[i] = world.rank + i;
  MPI_Allreduce(out, in, ints, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const int ranks = world.size * (world.size - 1) / 2;
  for (int i = 0; i < ints; ++i) CHECK(in[i] == ranks + i * world.size);
  const int root = world.size / 2;
  if (world.rank == root) memset(out, 0x5a, ints * sizeof(int));
  MPI_Bcast(out, ints, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < ints; ++i) CHECK(out[i] == 0x5a5a5a5a);
  free(in);
  free(out);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  for (int round = 0; round < 2; ++round) {
    stream_around(world);
    gather_from_anybody(world);
    use_collectives(world);
  }
  return end_program(world);
}
