// MPI without MPI_Init and MPI_Finalize: two sessions at once, with work in each.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// CHECK of check.h uses a world, which does not exist here.
static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "'%s' does not hold\n", what);
  exit(3);
}

struct Part {
  MPI_Session session;
  MPI_Comm comm;
};

static struct Part open_part(const char* tag) {
  struct Part part;
  MPI_Group group;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &part.session);
  MPI_Group_from_session_pset(part.session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &part.comm);
  MPI_Group_free(&group);
  return part;
}

static void close_part(struct Part* part) {
  MPI_Comm_free(&part->comm);
  MPI_Session_finalize(&part->session);
}

static int sum_of_ranks(MPI_Comm comm) {
  int rank = 0;
  int sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

int main(void) {
  struct Part one = open_part("one");
  struct Part other = open_part("other");
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(one.comm, &rank);
  MPI_Comm_size(one.comm, &size);
  check(sum_of_ranks(one.comm) == size * (size - 1) / 2, "the sum over the first session");
  close_part(&one);
  // One session remains: time is still virtual, and messages arrive.
  check(sum_of_ranks(other.comm) == size * (size - 1) / 2, "the sum over the second session");
  check(MPI_Wtime() < 1, "a clock that began at MPI_Session_init");
  MPI_Barrier(other.comm);
  close_part(&other);
  if (rank == 0) printf("passed\n");
  return 0;
}
