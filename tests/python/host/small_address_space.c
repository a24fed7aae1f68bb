// Limits its address space to KIB (0: as it is) before MPI_Init. KIB "beyond": by so much more than what it
// uses and the simulated network maps once more.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static unsigned long used_and_network(void) {
  unsigned long pages = 0, bytes = 0, begin, end;
  char line[512];
  FILE* size = fopen("/proc/self/statm", "r");
  if (size == NULL || fscanf(size, "%lu", &pages) != 1) abort();
  fclose(size);
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps) != NULL) {
    if (strstr(line, "memfd:apenet") != NULL && sscanf(line, "%lx-%lx", &begin, &end) == 2)
      bytes += end - begin;
  }
  fclose(maps);
  return pages * (unsigned long)sysconf(_SC_PAGESIZE) + bytes;
}

int main(int count, char** arguments) {
  unsigned long bytes = strtoul(arguments[1], NULL, 10) << 10;
  time(NULL);  // makes the shim map the simulation
  if (count > 2) bytes += used_and_network();
  const struct rlimit limit = {bytes, bytes};
  if (bytes != 0 && setrlimit(RLIMIT_AS, &limit) != 0) abort();
  MPI_Init(NULL, NULL);
  MPI_Finalize();
  return 0;
}
