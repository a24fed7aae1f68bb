// Writes by a shared file pointer, whose file's name one rank sends to all others.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_File file;
  char text[16];
  snprintf(text, sizeof text, "rank %d\n", rank);
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != 0)
    return 1;
  MPI_File_write_ordered(file, text, (int)strlen(text), MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  if (rank == 0) printf("%.9f\n", MPI_Wtime());
  MPI_Finalize();
  return 0;
}
