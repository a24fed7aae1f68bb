/* The last rank in MPI_Finalize waits for its process manager, which does not answer: PMIx goes on after 2 s.
   Tells the test by files when it is about to wait, and that it has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stddef.h>
#include <unistd.h>

enum { ranks = 4 };

static int rank;

static void make_file(const char* name) {
  close(open(name, O_WRONLY | O_CREAT, 0600));
}

/* Called by the MPI library instead of PMIx's function. */
int PMIx_Finalize(const void* info, size_t count) {
  typedef int Finalize(const void*, size_t);
  void* library = dlopen("libpmix.so.2", RTLD_NOW);
  Finalize* finalize = (Finalize*)dlsym(library, "PMIx_Finalize");
  if (rank < ranks - 1) return finalize(info, count);
  make_file("is_last");
  while (access("is_stopped", F_OK) != 0) usleep(10000);
  const int result = finalize(info, count);
  make_file("has_waited");
  while (access("is_continued", F_OK) != 0) usleep(10000);
  return result;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
