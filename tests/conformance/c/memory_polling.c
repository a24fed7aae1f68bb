// A rank that sleeps between looks at its own memory sees what others put there, without any MPI call.
#define _POSIX_C_SOURCE 200809L  // nanosleep
#include <time.h>

#include "check.h"

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  volatile int* memory = NULL;
  MPI_Win window;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void*)&memory, &window);
  *memory = 0;
  MPI_Win_lock_all(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  // A token circulates: the rank that has it writes to the next rank's memory.
  const struct timespec nap = {.tv_sec = 0, .tv_nsec = 2000};
  const int next = (world.rank + 1) % world.size;
  const int token = 4711;
  if (world.size > 1) {
    if (world.rank != 0) {
      while (*memory != token) nanosleep(&nap, NULL);
    }
    MPI_Put(&token, 1, MPI_INT, next, 0, 1, MPI_INT, window);
    MPI_Win_flush(next, window);
    while (*memory != token) nanosleep(&nap, NULL);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  return end_program(world);
}
