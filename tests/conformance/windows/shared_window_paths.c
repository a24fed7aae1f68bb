// Drawn accesses to the memory of other ranks of a node, three ways at once: by loads and stores in a shared
// window, by the library's operations on a shared window, and by these on an ordinary window. After each
// epoch all three hold what a serial model says, byte for byte.
#include <stdint.h>
#include <string.h>

#include "../c/check.h"

enum { words = 96, most_ranks = 16, epochs = 60, ways = 3 };
enum Way { by_stores, on_shared_window, on_ordinary_window };
enum Kind { store, strided_store, add, load, kinds };

// What a rank does in an epoch. Each rank's memory is the target of one rank.
struct Access {
  enum Kind kind;
  int target;
  int first;
  int count;
  int stride;  // in words
};

static uint64_t draws = 88172645463325252U;

// The same numbers on all ranks.
static int draw(int below) {
  draws ^= draws << 13;
  draws ^= draws >> 7;
  draws ^= draws << 17;
  return (int)(draws % (uint64_t)below);
}

static struct Access draw_access(int target) {
  struct Access access = {.kind = (enum Kind)draw(kinds), .target = target, .stride = 1};
  if (access.kind == strided_store) access.stride = 2 + draw(3);
  access.count = draw(words / access.stride + 1);
  access.first = draw(words - access.count * access.stride + 1);
  return access;
}

static int value_of(int rank, int epoch, int i) {
  return pattern(rank, epoch, i);
}

// Does it in memory that the program reaches by loads and stores.
static void do_in_memory(const struct Access* access, int* memory, int rank, int epoch, int* loaded) {
  for (int i = 0; i < access->count; ++i) {
    int* word = &memory[access->first + i * access->stride];
    if (access->kind == load) {
      loaded[i] = *word;
    } else {
      *word = value_of(rank, epoch, i) + (access->kind == add ? *word : 0);
    }
  }
}

// `buffer` belongs to the library until the epoch has ended.
static void do_by_library(const struct Access* access, MPI_Win window, int rank, int epoch, int* buffer) {
  for (int i = 0; i < access->count && access->kind != load; ++i) buffer[i] = value_of(rank, epoch, i);
  const MPI_Aint first = access->first;
  const int count = access->count;
  if (access->kind == store) MPI_Put(buffer, count, MPI_INT, access->target, first, count, MPI_INT, window);
  if (access->kind == add)
    MPI_Accumulate(buffer, count, MPI_INT, access->target, first, count, MPI_INT, MPI_SUM, window);
  if (access->kind == load) MPI_Get(buffer, count, MPI_INT, access->target, first, count, MPI_INT, window);
  if (access->kind != strided_store) return;
  MPI_Datatype strided;
  MPI_Type_vector(count, 1, access->stride, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  MPI_Put(buffer, count, MPI_INT, access->target, first, 1, strided, window);
  MPI_Type_free(&strided);
}

static void open_epoch(MPI_Win window, int is_passive) {
  if (!is_passive) {
    MPI_Win_fence(0, window);
    return;
  }
  MPI_Win_lock_all(0, window);
  MPI_Win_sync(window);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void close_epoch(MPI_Win window, int is_passive) {
  if (!is_passive) {
    MPI_Win_fence(0, window);
    return;
  }
  MPI_Win_flush_all(window);
  MPI_Win_sync(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(window);
  MPI_Win_unlock_all(window);
}

static int* shared_memory_of(MPI_Win window, int rank) {
  MPI_Aint bytes;
  int unit;
  int* base;
  MPI_Win_shared_query(window, rank, &bytes, &unit, &base);
  CHECK(bytes == (MPI_Aint)(words * sizeof(int)) && unit == (int)sizeof(int));
  return base;
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  CHECK(world.size <= most_ranks);
  MPI_Win windows[ways];
  int* own[ways];
  const MPI_Aint bytes = (MPI_Aint)(words * sizeof(int));
  for (enum Way way = by_stores; way <= on_shared_window; ++way)
    MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own[way], &windows[way]);
  MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own[on_ordinary_window],
                   &windows[on_ordinary_window]);
  int model[most_ranks][words];
  memset(model, 0, sizeof model);
  for (int way = 0; way < ways; ++way) memset(own[way], 0, (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);

  for (int epoch = 0; epoch < epochs; ++epoch) {
    const int is_passive = draw(2);
    const int distance = draw(world.size);
    int buffers[ways][words];
    int loaded[words];
    struct Access access = {.kind = load};
    for (int rank = 0; rank < world.size; ++rank) {
      const struct Access drawn = draw_access((rank + distance) % world.size);
      int of_rank[words];
      do_in_memory(&drawn, model[drawn.target], rank, epoch, of_rank);
      if (rank != world.rank) continue;
      access = drawn;
      memcpy(loaded, of_rank, sizeof loaded);
    }
    for (int way = 0; way < ways; ++way) open_epoch(windows[way], is_passive);
    int* const target = shared_memory_of(windows[by_stores], access.target);
    do_in_memory(&access, target, world.rank, epoch, buffers[by_stores]);
    for (int way = on_shared_window; way < ways; ++way)
      do_by_library(&access, windows[way], world.rank, epoch, buffers[way]);
    for (int way = 0; way < ways; ++way) close_epoch(windows[way], is_passive);
    for (int way = 0; way < ways; ++way) {
      CHECK(memcmp(own[way], model[world.rank], (size_t)bytes) == 0);
      if (access.kind == load) CHECK(memcmp(buffers[way], loaded, (size_t)access.count * sizeof(int)) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);  // nobody writes before all have compared
  }
  for (int way = 0; way < ways; ++way) MPI_Win_free(&windows[way]);
  return end_program(world);
}
