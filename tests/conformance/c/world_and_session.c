// A session outlives the world: MPI_Finalize is not the end of the rank.
#include "check.h"

int main(int argc, char** argv) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int sum = 0;
  const struct World world = begin_program(&argc, &argv);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "outlives", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Finalize();
  MPI_Allreduce(&world.rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (sum != world.size * (world.size - 1) / 2) return 3;
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  if (world.rank == 0) printf("passed\n");
  return 0;
}
