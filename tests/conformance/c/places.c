// Places of ranks: each names its node of the simulated machine, and ranks of one node find each other.
#define _GNU_SOURCE
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "check.h"

enum { most_ranks = 64, name_room = MPI_MAX_PROCESSOR_NAME };

static int is_without_any_tag(MPI_Comm comm) {
  MPI_Info hints;
  char value[8] = "";
  int is_set = 0;
  MPI_Comm_get_info(comm, &hints);
  MPI_Info_get(hints, "mpi_assert_no_any_tag", sizeof value - 1, value, &is_set);
  MPI_Info_free(&hints);
  return is_set && strcmp(value, "true") == 0;
}

int main(int argc, char** argv) {
  const int per_node = argc > 1 ? atoi(argv[1]) : 1;
  const struct World world = begin_program(&argc, &argv);
  char name[name_room] = "";
  char host[name_room] = "";
  static char all[most_ranks][name_room];
  struct utsname names;
  int length = 0;
  MPI_Get_processor_name(name, &length);
  CHECK(length == (int)strlen(name) && strncmp(name, "ape16-", 6) == 0);
  CHECK(gethostname(host, sizeof host) == 0 && strcmp(host, name) == 0);
  CHECK(gethostname(host, 3) != 0);
  CHECK(uname(&names) == 0 && strcmp(names.nodename, name) == 0 && strcmp(names.sysname, "Linux") == 0);

  MPI_Allgather(name, name_room, MPI_CHAR, all, name_room, MPI_CHAR, MPI_COMM_WORLD);
  for (int rank = 0; rank < world.size; ++rank) {
    CHECK((strcmp(all[rank], name) == 0) == (rank / per_node == world.rank / per_node));
  }

  // In the order of the keys, with hints, and with ranks that do not take part.
  MPI_Comm node;
  int size = 0;
  int place = -1;
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "mpi_assert_no_any_tag", "true");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -world.rank, hints, &node);
  MPI_Info_free(&hints);
  CHECK(is_without_any_tag(node));
  MPI_Comm_size(node, &size);
  MPI_Comm_rank(node, &place);
  const int first = world.rank / per_node * per_node;
  const int expected = world.size - first < per_node ? world.size - first : per_node;
  CHECK(size == expected && place == first + expected - 1 - world.rank);
  MPI_Comm_free(&node);

  const int aside = world.rank == 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, aside ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  CHECK((node == MPI_COMM_NULL) == aside);
  if (!aside) {
    MPI_Comm_size(node, &size);
    CHECK(size == expected - (first == 0 ? 1 : 0));
    MPI_Comm_free(&node);
  }
  return end_program(world);
}
