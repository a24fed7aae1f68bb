// Starts processes by the function that its argument names. With a second argument, the call returns errors.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Comm children = MPI_COMM_NULL;
  char name[] = "true";
  char* names[] = {name, name};
  const int counts[] = {1, 1};
  const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  MPI_Init(&argc, &argv);
  setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
  puts("before");
  if (argc > 2) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int error = 0;
  if (strcmp(argv[1], "MPI_Comm_spawn") == 0)
    error = MPI_Comm_spawn(name, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                           MPI_ERRCODES_IGNORE);
  else
    error = MPI_Comm_spawn_multiple(2, names, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &children,
                                    MPI_ERRCODES_IGNORE);
  puts(error == MPI_ERR_SPAWN ? "refused" : "after");
  return MPI_Finalize();
}
