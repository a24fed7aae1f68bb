// Writes behind an allocation, or into one that it has freed: what valgrind must find in a rank. Polls, for
// which the simulator asks the kernel whether the arguments can be read: of that valgrind must say nothing.
#include <mpi.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  enum { bytes = 16 };
  MPI_Init(&argc, &argv);
  volatile char* volatile memory = malloc(bytes);
  if (strcmp(argv[1], "overrun") == 0) memory[bytes] = 1;
  volatile char* volatile freed = memory;
  free((void*)memory);
  if (strcmp(argv[1], "freed") == 0) freed[0] = 1;
  struct pollfd file = {.fd = 0, .events = POLLIN};
  poll(&file, 1, 0);
  MPI_Finalize();
  return 0;
}
