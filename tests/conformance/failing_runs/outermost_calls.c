// The first rank makes one collective call, of which the MPI library makes others, while the rest wait in a
// barrier of their own.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  const char* const call = argc > 1 ? argv[1] : "";
  const char* const path = argc > 2 ? argv[2] : "";
  int rank = 0;
  int value = 0;
  int* memory = NULL;
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_File file;
  MPI_Win window;
  MPI_Comm made;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int opens = strncmp(call, "MPI_File", 8) == 0 && strcmp(call, "MPI_File_open") != 0;
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  if (opens) MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file);
  if (rank != 0) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(call, "MPI_File_open") == 0) {
    MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file);
  } else if (strcmp(call, "MPI_File_set_view") == 0) {
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  } else if (strcmp(call, "MPI_File_write_ordered") == 0) {
    MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  } else if (strcmp(call, "MPI_File_set_size") == 0) {
    MPI_File_set_size(file, 100);
  } else if (strcmp(call, "MPI_File_close") == 0) {
    MPI_File_close(&file);
  } else if (strcmp(call, "MPI_Win_allocate_shared") == 0) {
    MPI_Win_allocate_shared(sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  } else if (strcmp(call, "MPI_Comm_split_type") == 0) {
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  } else if (strcmp(call, "MPI_Comm_accept") == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made);
  }
  MPI_Finalize();
  return 0;
}
