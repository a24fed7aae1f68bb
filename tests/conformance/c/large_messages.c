// Large messages: 64 MiB to a neighbour in both directions at once, and truncation errors.
#include <string.h>

#include "check.h"

static const int large_bytes = 64 << 20;

static unsigned char byte_at(int rank, int position) {
  return (unsigned char)(((unsigned)position * 2654435761U >> 24) + (unsigned)rank);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  const int partner = world.rank ^ 1;
  if (world.rank < 2 && world.size > 1) {
    unsigned char* outgoing = malloc((size_t)large_bytes);
    unsigned char* incoming = malloc((size_t)large_bytes);
    for (int i = 0; i < large_bytes; ++i) outgoing[i] = byte_at(world.rank, i);
    MPI_Status status;
    MPI_Sendrecv(outgoing, large_bytes, MPI_BYTE, partner, 1, incoming, large_bytes, MPI_BYTE, partner, 1,
                 MPI_COMM_WORLD, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == large_bytes);
    for (int i = 0; i < large_bytes; ++i) CHECK(incoming[i] == byte_at(partner, i));

    // One side is late: the message waits unexpected, and its data stays with the sender.
    if (world.rank == 0) {
      MPI_Send(outgoing, large_bytes / 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    } else {
      memset(incoming, 0, (size_t)large_bytes);
      MPI_Status found;
      MPI_Probe(0, 2, MPI_COMM_WORLD, &found);
      MPI_Get_count(&found, MPI_BYTE, &count);
      CHECK(count == large_bytes / 8);
      MPI_Recv(incoming, large_bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < count; ++i) CHECK(incoming[i] == byte_at(0, i));
      CHECK(incoming[count] == 0);
    }

    // Too long for the receiver, eager and by rendezvous: an error class, and no write after the buffer.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int bytes = 100; bytes <= 1000000; bytes *= 10000) {
      if (world.rank == 0) {
        MPI_Send(outgoing, bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
      } else {
        memset(incoming, 0xee, (size_t)bytes);
        const int result = MPI_Recv(incoming, bytes / 2, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int class = MPI_SUCCESS;
        MPI_Error_class(result, &class);
        CHECK(class == MPI_ERR_TRUNCATE);
        for (int i = bytes / 2; i < bytes; ++i) CHECK(incoming[i] == 0xee);
      }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(outgoing);
    free(incoming);
  }
  return end_program(world);
}
