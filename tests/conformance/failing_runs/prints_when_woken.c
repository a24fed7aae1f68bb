// Rank 1 wakes rank 0, which waits in the host, and waits for it in MPI while rank 0 prints more than a pipe
// holds. The argument is a folder for the program.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../c/check.h"

enum { lines = 4000 };

int main(int argc, char** argv) {
  char path[512];
  char c = 'x';
  const struct World world = begin_program(&argc, &argv);
  snprintf(path, sizeof path, "%s/fifo", argv[1]);
  if (world.rank == 0) CHECK(mkfifo(path, 0600) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const int fifo = open(path, O_RDWR);
  if (world.rank == 0) {
    CHECK(read(fifo, &c, 1) == 1);
    for (int line = 0; line < lines; ++line) printf("line %d of %d, which all fill the pipe\n", line, lines);
  } else {
    sleep(10);
    CHECK(write(fifo, &c, 1) == 1);
  }
  return end_program(world);
}
