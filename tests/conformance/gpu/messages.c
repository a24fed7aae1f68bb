// Messages between the memories of GPUs and hosts: every size class, directed and collective, derived
// datatypes, to the own rank, and through a window. Prints the contents' check only, so it fits any machine
// with a GPU.
#include "../c/check.h"
#include "apenet_gpu.h"

enum { most_bytes = 100000, piece_bytes = 10, pieces = 100, window_bytes = 5000 };

static void fill(char* bytes, int count, int rank) {
  for (int i = 0; i < count; ++i) bytes[i] = (char)(7 * i + rank);
}

static int holds(const char* bytes, int count, int rank) {
  for (int i = 0; i < count; ++i) {
    if (bytes[i] != (char)(7 * i + rank)) return 0;
  }
  return 1;
}

static void pass_on(const struct World* world, char* from, char* to, int bytes) {
  const int next = (world->rank + 1) % world->size;
  const int previous = (world->rank + world->size - 1) % world->size;
  MPI_Request request;
  fill(from, bytes, world->rank);
  MPI_Isend(from, bytes, MPI_CHAR, next, bytes, MPI_COMM_WORLD, &request);
  MPI_Recv(to, bytes, MPI_CHAR, previous, bytes, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(holds(to, bytes, previous));
}

static void pass_vectors(const struct World* world, char* from, char* to) {
  const int next = (world->rank + 1) % world->size;
  const int previous = (world->rank + world->size - 1) % world->size;
  MPI_Datatype vector;
  MPI_Type_vector(pieces, piece_bytes, 2 * piece_bytes, MPI_CHAR, &vector);
  MPI_Type_commit(&vector);
  fill(from, 2 * pieces * piece_bytes, world->rank);
  MPI_Sendrecv(from, 1, vector, next, 1, to, 1, vector, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int piece = 0; piece < pieces; ++piece) {
    for (int i = 0; i < piece_bytes; ++i) {
      const int at = 2 * piece * piece_bytes + i;
      CHECK(to[at] == (char)(7 * at + previous));
    }
  }
  MPI_Type_free(&vector);
}

static void put_into(const struct World* world, char* from, char* to) {
  MPI_Win window;
  MPI_Win_create(to, window_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  fill(from, window_bytes, world->rank);
  MPI_Win_fence(0, window);
  MPI_Put(from, window_bytes, MPI_CHAR, (world->rank + 1) % world->size, 0, window_bytes, MPI_CHAR, window);
  MPI_Win_fence(0, window);
  CHECK(holds(to, window_bytes, (world->rank + world->size - 1) % world->size));
  MPI_Win_free(&window);
}

static void sum_and_spread(const struct World* world, double* from, double* to) {
  for (int i = 0; i < 1000; ++i) from[i] = world->rank + i;
  MPI_Allreduce(from, to, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 1000; ++i) CHECK(to[i] == world->size * (world->size - 1) / 2 + world->size * i);
  if (world->rank == 0) fill((char*)from, most_bytes, 5);
  MPI_Bcast(from, most_bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  CHECK(holds((const char*)from, most_bytes, 5));
}

int main(int argc, char** argv) {
  static const int sizes[] = {0, 1, 100, 1024, 1025, 4096, 4097, 20000, most_bytes};
  static char host[most_bytes];
  char* const first = ape_gpu_malloc(most_bytes);
  char* const second = ape_gpu_malloc(most_bytes);
  const struct World world = begin_program(&argc, &argv);
  CHECK(first != NULL && second != NULL);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    pass_on(&world, first, second, sizes[i]);
    pass_on(&world, host, second, sizes[i]);
    pass_on(&world, first, host, sizes[i]);
  }
  pass_vectors(&world, first, second);
  sum_and_spread(&world, (double*)first, (double*)second);
  // Open MPI's windows need another transport than libfabric's.
  if (argc == 1) put_into(&world, first, second);
  ape_gpu_free(first);
  ape_gpu_free(second);
  return end_program(world);
}
