// One-sided communication with active targets: fences, and post-start-complete-wait.
#include "check.h"

enum { words = 1000 };

static void fences(struct World world) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  int* memory = NULL;
  MPI_Win window;
  MPI_Win_allocate(words * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  for (int i = 0; i < words; ++i) memory[i] = -1;
  MPI_Win_fence(0, window);
  int outgoing[words];
  for (int i = 0; i < words; ++i) outgoing[i] = pattern(world.rank, 1, i);
  MPI_Put(outgoing, words, MPI_INT, right, 0, words, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < words; ++i) CHECK(memory[i] == pattern(left, 1, i));
  int fetched[words];
  MPI_Get(fetched, words, MPI_INT, right, 0, words, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < words; ++i) CHECK(fetched[i] == pattern(world.rank, 1, i));

  // Every rank adds to every rank.
  for (int i = 0; i < words; ++i) memory[i] = 0;
  MPI_Win_fence(0, window);
  for (int i = 0; i < words; ++i) outgoing[i] = world.rank + i;
  for (int target = 0; target < world.size; ++target)
    MPI_Accumulate(outgoing, words, MPI_INT, target, 0, words, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < words; ++i) CHECK(memory[i] == world.size * (world.size - 1) / 2 + world.size * i);

  // A strided put: every second word, from a dense origin.
  MPI_Datatype every_second;
  MPI_Type_vector(words / 2, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  for (int i = 0; i < words; ++i) memory[i] = -1;
  for (int i = 0; i < words; ++i) outgoing[i] = pattern(world.rank, 2, i);
  MPI_Win_fence(0, window);
  MPI_Put(outgoing, words / 2, MPI_INT, right, 0, 1, every_second, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < words; ++i) CHECK(memory[i] == (i % 2 == 0 ? pattern(left, 2, i / 2) : -1));
  MPI_Type_free(&every_second);
  MPI_Win_free(&window);
}

// Exposure to the left neighbour, access to the right one.
static void post_start_complete_wait(struct World world) {
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  static int memory[words];
  MPI_Win window;
  MPI_Group everybody;
  MPI_Group to;
  MPI_Group from;
  MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  MPI_Group_incl(everybody, 1, &right, &to);
  MPI_Group_incl(everybody, 1, &left, &from);
  for (int round = 0; round < 10; ++round) {
    int outgoing[words];
    for (int i = 0; i < words; ++i) outgoing[i] = pattern(world.rank, round, i);
    MPI_Win_post(from, 0, window);
    MPI_Win_start(to, 0, window);
    MPI_Put(outgoing, words, MPI_INT, right, 0, words, MPI_INT, window);
    MPI_Win_complete(window);
    int done = round % 2;
    if (done) {
      MPI_Win_wait(window);
    } else {
      while (!done) MPI_Win_test(window, &done);
    }
    for (int i = 0; i < words; ++i) CHECK(memory[i] == pattern(left, round, i));
  }
  MPI_Group_free(&everybody);
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  fences(world);
  post_start_complete_wait(world);
  return end_program(world);
}
