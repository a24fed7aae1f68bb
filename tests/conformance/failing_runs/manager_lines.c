// Writes a line to the process manager before MPI_Init ("early"), or while MPI runs ("late").
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const char* line) {
  const size_t bytes = strlen(line);
  if (write(atoi(getenv("PMI_FD")), line, bytes) != (ssize_t)bytes) abort();
}

int main(int count, char** arguments) {
  (void)count;
  int rank;
  const int is_early = strcmp(arguments[1], "early") == 0;
  if (is_early && strcmp(getenv("PMI_RANK"), "1") == 0) say(arguments[2]);
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!is_early && rank == 1) say(arguments[2]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
