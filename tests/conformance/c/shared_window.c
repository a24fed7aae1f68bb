// A window in memory that the ranks of a node share: layout, queries, loads and stores ordered by fences,
// locks and a loop that waits for a flag, and the library's own operations in the same memory.
#include <string.h>

#include "check.h"

enum { shared_words = 16 };

// Rank r of the node offers (r + 1) * 16 numbers, and the second rank none.
static MPI_Aint words_of(int rank) {
  return rank == 1 ? 0 : (MPI_Aint)(rank + 1) * shared_words;
}

static void check_layout(MPI_Win window, const int* own, struct World node) {
  const int* expected = NULL;
  for (int rank = 0; rank < node.size; ++rank) {
    MPI_Aint bytes = -1;
    int unit = -1;
    int* base = NULL;
    MPI_Win_shared_query(window, rank, &bytes, &unit, &base);
    CHECK(bytes == words_of(rank) * (MPI_Aint)sizeof(int) && unit == (int)sizeof(int));
    CHECK(expected == NULL || base == expected);
    CHECK(rank != node.rank || bytes == 0 || base == own);
    expected = base + words_of(rank);
  }
  MPI_Aint bytes = -1;
  int unit = -1;
  int* first = NULL;
  int* null_base = NULL;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &first);
  MPI_Win_shared_query(window, MPI_PROC_NULL, &bytes, &unit, &null_base);
  CHECK(null_base == first && bytes == words_of(0) * (MPI_Aint)sizeof(int));

  int* flavor = NULL;
  int* model = NULL;
  int has = 0;
  MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &flavor, &has);
  CHECK(has && *flavor == MPI_WIN_FLAVOR_SHARED);
  MPI_Win_get_attr(window, MPI_WIN_MODEL, &model, &has);
  CHECK(has && *model == MPI_WIN_UNIFIED);
}

static int* base_of(MPI_Win window, int rank) {
  MPI_Aint bytes;
  int unit;
  int* base;
  MPI_Win_shared_query(window, rank, &bytes, &unit, &base);
  return base;
}

static void check_fences(MPI_Win window, int* own, struct World node) {
  MPI_Win_fence(0, window);
  for (int i = 0; i < (int)words_of(node.rank); ++i) own[i] = pattern(node.rank, 1, i);
  MPI_Win_fence(0, window);
  for (int rank = 0; rank < node.size; ++rank) {
    const int* base = base_of(window, rank);
    for (int i = 0; i < (int)words_of(rank); ++i) CHECK(base[i] == pattern(rank, 1, i));
  }
  MPI_Win_fence(0, window);
  // Through the library: into the first word of rank 0, which its owner then loads.
  const int zero = 0;
  const int one = 1;
  if (node.rank == 0) own[0] = zero;
  MPI_Win_fence(0, window);
  MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(0, window);
  CHECK(base_of(window, 0)[0] == node.size);
  int read = -1;
  MPI_Get(&read, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  CHECK(read == node.size);
}

// A token goes round by a flag in the memory of rank 0: only stores, loads and MPI_Win_sync.
static void check_flag(MPI_Win window, struct World node) {
  volatile int* flag = base_of(window, 0) + 1;
  if (node.rank == 0) *flag = 0;
  MPI_Win_fence(0, window);
  MPI_Win_lock_all(0, window);
  for (int round = 0; round < 3; ++round) {
    const int turn = round * node.size + node.rank;
    while (*flag != turn) MPI_Win_sync(window);
    *flag = turn + 1;
    MPI_Win_sync(window);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_fence(0, window);
  CHECK(*flag == 3 * node.size);
}

static void check_locks(MPI_Win window, struct World node) {
  int* counter = base_of(window, 0) + 2;
  if (node.rank == 0) *counter = 0;
  MPI_Win_fence(0, window);
  for (int i = 0; i < 5; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    *counter = *counter + 1;
    MPI_Win_unlock(0, window);
  }
  MPI_Win_fence(0, window);
  CHECK(*counter == 5 * node.size);
}

static void check_refusals(MPI_Comm node_comm, struct World world, struct World node) {
  char* base = NULL;
  MPI_Win window;
  int kind = 0;
  MPI_Comm_set_errhandler(node_comm, MPI_ERRORS_RETURN);
  int code = MPI_Win_allocate_shared(-4, 1, MPI_INFO_NULL, node_comm, &base, &window);
  CHECK(code != MPI_SUCCESS);
  if (world.size == node.size) return;
  // Ranks of several nodes share no memory.
  MPI_Comm all;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  code = MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, all, &base, &window);
  MPI_Error_class(code, &kind);
  CHECK(kind == MPI_ERR_RMA_SHARED);
  MPI_Comm_free(&all);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  MPI_Comm node_comm;
  struct World node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node_comm);
  MPI_Comm_rank(node_comm, &node.rank);
  MPI_Comm_size(node_comm, &node.size);
  check_refusals(node_comm, world, node);
  for (int repetition = 0; repetition < 2; ++repetition) {
    MPI_Win window;
    MPI_Win second;
    int* own = NULL;
    int* other = NULL;
    const MPI_Aint bytes = words_of(node.rank) * (MPI_Aint)sizeof(int);
    MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, node_comm, &own, &window);
    MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, node_comm, &other, &second);
    if (bytes > 0) memset(own, 0, (size_t)bytes);
    check_layout(window, own, node);
    check_fences(window, own, node);
    check_flag(window, node);
    check_locks(window, node);
    CHECK(other != own);
    MPI_Win_free(&second);
    check_layout(window, own, node);
    MPI_Win_free(&window);
  }
  MPI_Comm_free(&node_comm);
  return end_program(world);
}
