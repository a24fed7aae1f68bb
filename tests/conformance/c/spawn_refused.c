// MPI_Comm_spawn fails with an error that the program can handle, and the run continues.
#include "check.h"

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  MPI_Comm children = MPI_COMM_NULL;
  int codes[1] = {MPI_SUCCESS};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int result =
      MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
  CHECK(result != MPI_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  return end_program(world);
}
