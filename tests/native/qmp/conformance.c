/* Every call of qmp.h, and its misuse, on any number of nodes. */
#include <stdarg.h>
#include <string.h>

#include "global.h"

static int node, nodes;

enum { LENGTH = 3000 };

static void queries_before_and_after_init(void) {
  EXPECT(!QMP_is_initialized());
  REFUSED(QMP_NOT_INITED, QMP_comm_get_default() == NULL);
  REFUSED(QMP_NOT_INITED, QMP_get_node_number() == -1);
  REFUSED(QMP_NOT_INITED, QMP_declare_msgmem("x", 1) == NULL);
  FAILS(QMP_NOT_INITED, QMP_barrier());
  FAILS(QMP_NOT_INITED, QMP_declare_logical_topology(&nodes, 1));
}

static void the_job(void) {
  EXPECT(QMP_is_initialized());
  FAILS(QMP_INVALID_OP, QMP_init_msg_passing(NULL, NULL, QMP_THREAD_SINGLE, NULL));
  node = QMP_get_node_number();
  nodes = QMP_get_number_of_nodes();
  EXPECT(node >= 0 && node < nodes);
  EXPECT(QMP_is_primary_node() == (node == 0));
  EXPECT(QMP_get_msg_passing_type() == QMP_GRID);
  const int count = QMP_get_allocated_number_of_dimensions();
  const int* const extents = QMP_get_allocated_dimensions();
  const int* const at = QMP_get_allocated_coordinates();
  int product = 1;
  for (int d = 0; d < count; ++d) {
    EXPECT(at[d] >= 0 && at[d] < extents[d]);
    product *= extents[d];
  }
  EXPECT(product == nodes);
  EXPECT(QMP_get_number_of_jobs() == 1 && QMP_get_job_number() == 0);
  EXPECT(QMP_get_number_of_job_geometry_dimensions() == count && QMP_get_job_geometry()[0] == extents[0]);
  EXPECT(QMP_io_node(node) == node && QMP_master_io_node() == 0);
  EXPECT(strcmp(QMP_version_str(), "2.5.4") == 0 && QMP_version_int() == 2005004);
  EXPECT(QMP_comm_get_allocated() == QMP_comm_get_job() && QMP_comm_get_job() == QMP_comm_get_default());
  void* hidden = NULL;
  FAILS(QMP_NOTSUPPORTED, QMP_get_hidden_comm(QMP_comm_get_default(), &hidden));
  for (int code = QMP_ERROR; code < QMP_MAX_STATUS; ++code)
    EXPECT(strlen(QMP_error_string((QMP_status_t)code)) > 5);
  EXPECT(strcmp(QMP_error_string(QMP_MAX_STATUS), "not a code of this library") == 0);
}

static void memory(void) {
  QMP_mem_t* const plain = QMP_allocate_memory(100);
  EXPECT(plain != NULL && (uintptr_t)QMP_get_memory_pointer(plain) % QMP_ALIGN_DEFAULT == 0);
  memset(QMP_get_memory_pointer(plain), 1, 100);
  const size_t alignments[] = {QMP_ALIGN_ANY, 1, 48, 4096};
  for (size_t i = 0; i < sizeof alignments / sizeof *alignments; ++i) {
    QMP_mem_t* const aligned = QMP_allocate_aligned_memory(7, alignments[i], QMP_MEM_FAST);
    EXPECT(aligned != NULL && QMP_get_memory_pointer(aligned) != NULL);
    EXPECT(alignments[i] == 0 || (uintptr_t)QMP_get_memory_pointer(aligned) % alignments[i] == 0);
    QMP_free_memory(aligned);
  }
  REFUSED(QMP_MEMSIZE_TOOBIG, QMP_allocate_memory(SIZE_MAX) == NULL);
  QMP_free_memory(plain);
  REFUSED(QMP_BAD_MEMORY, QMP_get_memory_pointer(plain) == NULL);
  QMP_free_memory(NULL);
  REFUSED(QMP_BAD_MEMORY, QMP_declare_msgmem(NULL, 1) == NULL);
  char some[8];
  REFUSED(QMP_INVALID_ARG, QMP_declare_strided_msgmem(some, 1, -1, 2) == NULL);
  REFUSED(QMP_INVALID_ARG, QMP_declare_strided_array_msgmem(NULL, NULL, NULL, NULL, 0) == NULL);
  REFUSED(QMP_INVALID_ARG, QMP_declare_indexed_msgmem(some, NULL, NULL, 1, 1) == NULL);
  QMP_msgmem_t freed = QMP_declare_msgmem(some, 8);
  QMP_free_msgmem(freed);
  REFUSED(QMP_BAD_MEMORY, QMP_declare_send_to(freed, 0, 0) == NULL);
}

/* Sends around the ring by node numbers, and compares what comes with what the lower neighbour sends. */
static void ring(QMP_msgmem_t out, QMP_msgmem_t in, int way) {
  const int up = (node + 1) % nodes, down = (node + nodes - 1) % nodes;
  QMP_msghandle_t handles[2] = {QMP_declare_send_to(out, up, 0), QMP_declare_receive_from(in, down, 1)};
  EXPECT(handles[0] != NULL && handles[1] != NULL);
  QMP_free_msgmem(out);
  QMP_free_msgmem(in);
  if (way == 0) {
    CALL(QMP_clear_to_send(handles[1], QMP_CTS_READY));
    CALL(QMP_start(handles[1]));
    CALL(QMP_start(handles[0]));
    FAILS(QMP_INVALID_OP, QMP_start(handles[0]));
    CALL(QMP_wait(handles[0]));
    CALL(QMP_wait(handles[1]));
  } else if (way == 1) {
    CALL(QMP_start(handles[0]));
    CALL(QMP_start(handles[1]));
    CALL(QMP_wait_all(handles, 2));
    CALL(QMP_wait_all(handles, 2));  // not started again
  } else {
    QMP_msghandle_t both =
        way == 2 ? QMP_declare_multiple(handles, 2) : QMP_declare_send_recv_pairs(handles, 2);
    EXPECT(both != NULL);
    FAILS(QMP_BAD_MESSAGE, QMP_start(handles[0]));  // a member
    CALL(QMP_start(both));
    while (!QMP_is_complete(both)) continue;
    CALL(QMP_get_error_number(both));
    QMP_free_msghandle(both);
    FAILS(QMP_BAD_MESSAGE, QMP_start(both));
    return;
  }
  QMP_free_msghandle(handles[0]);
  QMP_free_msghandle(handles[1]);
}

static int value(int from, int i) {
  return 100000 * from + i;
}

static void messages(void) {
  static int out[LENGTH], in[LENGTH];
  const int down = (node + nodes - 1) % nodes;
  const int lengths[] = {0, 1, 40, LENGTH};
  for (int i = 0; i < LENGTH; ++i) out[i] = value(node, i);
  for (int way = 0; way < 4; ++way) {
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; ++l) {
      const int count = lengths[l];
      memset(in, 0, sizeof in);
      ring(QMP_declare_msgmem(out, count * sizeof(int)), QMP_declare_msgmem(in, count * sizeof(int)), way);
      for (int i = 0; i < LENGTH; ++i) EXPECT(in[i] == (i < count ? value(down, i) : 0));
    }
    /* Every third, into the front; then the front, into every third from the back. */
    const int third = LENGTH / 3;
    memset(in, 0, sizeof in);
    ring(QMP_declare_strided_msgmem(out, sizeof(int), third, 3 * sizeof(int)),
         QMP_declare_msgmem(in, third * sizeof(int)), way);
    for (int i = 0; i < LENGTH; ++i) EXPECT(in[i] == (i < third ? value(down, 3 * i) : 0));
    memset(in, 0, sizeof in);
    ring(QMP_declare_msgmem(out, third * sizeof(int)),
         QMP_declare_strided_msgmem(&in[LENGTH - 1], sizeof(int), third, -3 * (ptrdiff_t)sizeof(int)), way);
    for (int i = 0; i < third; ++i)
      EXPECT(in[LENGTH - 1 - 3 * i] == value(down, i) && in[LENGTH - 2 - 3 * i] == 0);
    /* Two strided parts, the second before the first. */
    void* bases[] = {&out[10], &out[0]};
    size_t sizes[] = {sizeof(int), 2 * sizeof(int)};
    int blocks[] = {3, 2};
    ptrdiff_t strides[] = {4 * sizeof(int), 5 * sizeof(int)};
    int blocklen[] = {2, 0, 4, 1}, index[] = {5, 1, 20, 0};
    memset(in, 0, sizeof in);
    ring(QMP_declare_strided_array_msgmem(bases, sizes, blocks, strides, 2),
         QMP_declare_indexed_msgmem(in, blocklen, index, sizeof(int), 4), way);
    const int taken[] = {10, 14, 18, 0, 1, 5, 6}, placed[] = {5, 6, 20, 21, 22, 23, 0};
    int sum = 0, expected = 0;
    for (int i = 0; i < 7; ++i) EXPECT(in[placed[i]] == value(down, taken[i]));
    for (int i = 0; i < 7; ++i) expected += value(down, taken[i]);
    for (int i = 0; i < LENGTH; ++i) sum += in[i];
    EXPECT(sum == expected);
  }
}

static void addresses_and_misuse(void) {
  int out[8], in[8] = {0};
  const int up = (node + 1) % nodes, down = (node + nodes - 1) % nodes;
  for (int i = 0; i < 8; ++i) out[i] = value(node, i);
  QMP_msgmem_t wide = QMP_declare_strided_msgmem(out, sizeof(int), 2, 2 * sizeof(int));
  QMP_msgmem_t narrow = QMP_declare_msgmem(in, sizeof(int));
  QMP_msgmem_t enough = QMP_declare_msgmem(in, 4 * sizeof(int));
  QMP_msghandle_t send = QMP_declare_send_to(wide, up, 0);
  QMP_msghandle_t receive = QMP_declare_receive_from(enough, down, 0);
  CALL(QMP_change_address(send, &out[3]));
  CALL(QMP_change_address(receive, &in[4]));
  CALL(QMP_start(send));
  CALL(QMP_start(receive));
  FAILS(QMP_INVALID_OP, QMP_change_address(send, out));
  CALL(QMP_wait(send));
  CALL(QMP_wait(receive));
  EXPECT(in[4] == value(down, 3) && in[5] == value(down, 5) && in[6] == 0 && in[0] == 0);
  FAILS(QMP_BAD_MEMORY, QMP_change_address(send, NULL));
  FAILS(QMP_INVALID_OP, QMP_change_address_multiple(send, NULL, 0));

  QMP_msghandle_t pair[] = {send, receive, send};
  REFUSED(QMP_INVALID_ARG, QMP_declare_multiple(pair, 3) == NULL);
  REFUSED(QMP_INVALID_ARG, QMP_declare_multiple(pair, -1) == NULL);
  QMP_msghandle_t both = QMP_declare_multiple(pair, 2);
  void* bases[] = {&out[1], &in[0]};
  FAILS(QMP_INVALID_ARG, QMP_change_address_multiple(both, bases, 1));
  CALL(QMP_change_address_multiple(both, bases, 2));
  QMP_msghandle_t none = QMP_declare_multiple(NULL, 0);
  QMP_msghandle_t nested[] = {none, both};
  QMP_msghandle_t all = QMP_declare_multiple(nested, 2);
  CALL(QMP_start(all));
  CALL(QMP_wait(all));
  EXPECT(in[0] == value(down, 1) && in[1] == value(down, 3));
  QMP_free_msghandle(all);

  /* Longer than the memory that receives it. */
  send = QMP_declare_send_to(wide, up, 0);
  receive = QMP_declare_receive_from(narrow, down, 0);
  CALL(QMP_start(receive));
  CALL(QMP_start(send));
  CALL(QMP_wait(send));
  FAILS(QMP_MEMSIZE_ERR, QMP_wait(receive));
  FAILS(QMP_MEMSIZE_ERR, QMP_get_error_number(receive));
  EXPECT(strcmp(QMP_get_error_string(receive), QMP_error_string(QMP_MEMSIZE_ERR)) == 0);
  CALL(QMP_start(receive));
  CALL(QMP_get_error_number(receive));
  CALL(QMP_start(send));
  while (!QMP_is_complete(receive)) continue;
  FAILS(QMP_MEMSIZE_ERR, QMP_get_error_number(receive));
  FAILS(QMP_MEMSIZE_ERR, QMP_wait(receive));
  CALL(QMP_wait(send));
  QMP_free_msghandle(send);
  QMP_free_msghandle(receive);

  REFUSED(QMP_NODE_OUTRANGE, QMP_declare_send_to(wide, nodes, 0) == NULL);
  REFUSED(QMP_NODE_OUTRANGE, QMP_declare_receive_from(wide, -1, 0) == NULL);
  REFUSED(QMP_INVALID_TOPOLOGY, QMP_declare_send_relative(wide, 0, 1, 0) == NULL);
  FAILS(QMP_BAD_MESSAGE, QMP_start(NULL));
  FAILS(QMP_BAD_MESSAGE, QMP_wait(send));
  FAILS(QMP_BAD_MESSAGE, QMP_clear_to_send(send, QMP_CTS_DISABLED));
  QMP_free_msghandle(NULL);
  QMP_free_msgmem(wide);
  QMP_free_msgmem(narrow);
  QMP_free_msgmem(enough);
}

static void topology(void) {
  EXPECT(!QMP_logical_topology_is_declared() && QMP_get_logical_number_of_dimensions() == 0);
  EXPECT(QMP_get_logical_dimensions() == NULL);
  REFUSED(QMP_INVALID_TOPOLOGY, QMP_get_logical_coordinates() == NULL);
  const int wrong[] = {nodes + 1, 1}, negative[] = {-1, -nodes};
  FAILS(QMP_INVALID_ARG, QMP_declare_logical_topology(wrong, 2));
  FAILS(QMP_INVALID_ARG, QMP_declare_logical_topology(negative, 2));
  FAILS(QMP_INVALID_ARG, QMP_declare_logical_topology(NULL, 2));
  CALL(QMP_declare_logical_topology(NULL, 0));
  const int half = nodes % 2 == 0 ? 2 : 1;
  const int extents[] = {half, 1, nodes / half};
  const int twice[] = {0, 0, 1}, order[] = {2, 1, 0};
  FAILS(QMP_INVALID_ARG, QMP_declare_logical_topology_map(extents, 3, twice, 3));
  CALL(QMP_declare_logical_topology_map(extents, 3, order, 3));
  FAILS(QMP_TOPOLOGY_EXISTS, QMP_declare_logical_topology(extents, 3));
  EXPECT(QMP_logical_topology_is_declared() && QMP_get_logical_number_of_dimensions() == 3);
  EXPECT(QMP_get_logical_dimensions()[2] == nodes / half);
  int seen = 0;
  for (int other = 0; other < nodes; ++other) {
    int* const at = QMP_get_logical_coordinates_from(other);
    int again[3];
    QMP_get_logical_coordinates_from2(again, other);
    EXPECT(memcmp(at, again, sizeof again) == 0 && QMP_get_node_number_from(at) == other);
    for (int d = 0; d < 3; ++d) EXPECT(at[d] >= 0 && at[d] < extents[d]);
    if (other == node) seen += memcmp(at, QMP_get_logical_coordinates(), sizeof again) == 0;
    free(at);
  }
  EXPECT(seen == 1);
  REFUSED(QMP_NODE_OUTRANGE, QMP_get_logical_coordinates_from(nodes) == NULL);

  /* All neighbours at once; where both are the same node, the directions keep apart. */
  int out[6], in[6];
  QMP_msghandle_t handles[12];
  QMP_msgmem_t memories[12];
  for (int d = 0; d < 6; ++d) {
    out[d] = 10 * node + d;
    in[d] = -1;
    memories[2 * d] = QMP_declare_msgmem(&in[d], sizeof(int));
    memories[2 * d + 1] = QMP_declare_msgmem(&out[d], sizeof(int));
    handles[2 * d] = QMP_declare_receive_relative(memories[2 * d], d / 2, d % 2 ? -1 : 1, 0);
    handles[2 * d + 1] = QMP_declare_send_relative(memories[2 * d + 1], d / 2, d % 2 ? -1 : 1, 0);
    EXPECT(handles[2 * d] != NULL && handles[2 * d + 1] != NULL);
  }
  REFUSED(QMP_INVALID_ARG, QMP_declare_send_relative(memories[0], 3, 1, 0) == NULL);
  REFUSED(QMP_INVALID_ARG, QMP_declare_send_relative(memories[0], 0, 2, 0) == NULL);
  QMP_msghandle_t all = QMP_declare_multiple(handles, 12);
  for (int turn = 0; turn < 3; ++turn) {
    CALL(QMP_start(all));
    CALL(QMP_wait(all));
    for (int d = 0; d < 6; ++d) {
      int at[3];
      memcpy(at, QMP_get_logical_coordinates(), sizeof at);
      at[d / 2] += d % 2 ? -1 : 1;
      EXPECT(in[d] == 10 * QMP_get_node_number_from(at) + (d ^ 1) + turn);
    }
    for (int d = 0; d < 6; ++d) ++out[d];
  }
  QMP_free_msghandle(all);
  for (int m = 0; m < 12; ++m) QMP_free_msgmem(memories[m]);
}

static void layout(void) {
  REFUSED(QMP_INVALID_OP, QMP_get_subgrid_dimensions() == NULL);
  const int lattice[] = {8, 4, 8 * nodes}, odd[] = {nodes + 1, nodes + 1, nodes + 1}, empty[] = {8, 0, 8};
  FAILS(QMP_INVALID_ARG, QMP_layout_grid(lattice, 0));
  FAILS(QMP_INVALID_ARG, QMP_layout_grid(empty, 3));
  if (nodes > 1) FAILS(QMP_INVALID_TOPOLOGY, QMP_layout_grid(odd, 3));
  if (nodes > 2) FAILS(QMP_INVALID_TOPOLOGY, QMP_layout_grid(lattice, 2));
  CALL(QMP_layout_grid(lattice, 3));
  EXPECT(QMP_get_number_of_subgrid_sites() == 8 * 4 * 8);
  EXPECT(QMP_get_subgrid_dimensions()[1] == 4);
}

static void communicators(void) {
  QMP_comm_t whole = QMP_comm_get_default(), part = NULL, none = whole;
  FAILS(QMP_INVALID_OP, QMP_comm_free(whole));
  FAILS(QMP_INVALID_ARG, QMP_comm_set_default(NULL));
  FAILS(QMP_INVALID_ARG, QMP_comm_split(whole, 0, 0, NULL));
  CALL(QMP_comm_split(whole, -1, 0, &none));
  EXPECT(none == NULL);
  /* Odd and even nodes, in reverse. */
  CALL(QMP_comm_split(whole, node % 2, -node, &part));
  const int size = (nodes + 1 - node % 2) / 2;
  EXPECT(QMP_comm_get_number_of_nodes(part) == size);
  EXPECT(QMP_comm_get_node_number(part) == size - 1 - node / 2);
  EXPECT(QMP_comm_get_color(part) == node % 2 && QMP_comm_get_key(part) == -node);
  EXPECT(QMP_comm_get_number_of_colors(part) == (nodes > 1 ? 2 : 1));
  EXPECT(QMP_comm_is_primary_node(part) == (node / 2 == size - 1));
  global(part);
  CALL(QMP_comm_declare_logical_topology(part, &size, 1));
  EXPECT(QMP_comm_logical_topology_is_declared(part) && QMP_comm_get_logical_number_of_dimensions(part) == 1);
  const int own = QMP_comm_get_node_number(part);
  EXPECT(QMP_comm_get_logical_dimensions(part)[0] == size &&
         QMP_comm_get_logical_coordinates(part)[0] == own);
  int* const at = QMP_comm_get_logical_coordinates_from(part, size - 1);
  int again = -1;
  QMP_comm_get_logical_coordinates_from2(part, &again, size - 1);
  EXPECT(at[0] == size - 1 && again == at[0] && QMP_comm_get_node_number_from(part, at) == size - 1);
  free(at);
  /* The same two nodes exchange in both communicators: what is sent last is received first. */
  int out[4] = {1 + node, 2 + node, 3 + node, 4 + node}, in[4] = {0};
  QMP_msgmem_t memories[8];
  for (int i = 0; i < 4; ++i) {
    memories[i] = QMP_declare_msgmem(&out[i], sizeof(int));
    memories[4 + i] = QMP_declare_msgmem(&in[i], sizeof(int));
  }
  const int up = (own + 1) % size, down = (own + size - 1) % size;
  const int world_up = (node + 2 * nodes - 2) % nodes, world_down = (node + 2) % nodes;
  QMP_msghandle_t sends[] = {QMP_declare_send_to(memories[0], world_up, 0),
                             QMP_comm_declare_send_to(part, memories[1], up, 0),
                             QMP_comm_declare_send_relative(part, memories[2], 0, 1, 0),
                             QMP_comm_declare_send_relative(part, memories[3], 0, -1, 0)};
  QMP_msghandle_t receives[] = {QMP_comm_declare_receive_relative(part, memories[7], 0, 1, 0),
                                QMP_comm_declare_receive_relative(part, memories[6], 0, -1, 0),
                                QMP_comm_declare_receive_from(part, memories[5], down, 0),
                                QMP_declare_receive_from(memories[4], world_down, 0)};
  for (int i = 0; i < 4; ++i) CALL(QMP_start(sends[i]));
  for (int i = 0; i < 4; ++i) CALL(QMP_start(receives[i]));
  for (int i = 0; i < 4; ++i) CALL(QMP_wait(receives[i]));
  CALL(QMP_wait_all(sends, 4));
  /* In a communicator in reverse order, up is the node two below. */
  const int lower = 2 * (size - 1 - down) + node % 2, higher = 2 * (size - 1 - up) + node % 2;
  EXPECT(in[0] == 1 + world_down && in[1] == 2 + lower && in[2] == 3 + lower && in[3] == 4 + higher);
  for (int i = 0; i < 4; ++i) {
    QMP_free_msghandle(sends[i]);
    QMP_free_msghandle(receives[i]);
    QMP_free_msgmem(memories[i]);
    QMP_free_msgmem(memories[4 + i]);
  }
  CALL(QMP_comm_set_default(part));
  EXPECT(QMP_get_number_of_nodes() == size && QMP_comm_get_default() == part);
  FAILS(QMP_INVALID_OP, QMP_comm_free(part));
  CALL(QMP_comm_set_default(whole));
  CALL(QMP_comm_set_job(part));
  CALL(QMP_comm_set_allocated(part));
  EXPECT(QMP_comm_get_job() == part && QMP_comm_get_allocated() == part);
  CALL(QMP_comm_set_job(whole));
  CALL(QMP_comm_set_allocated(whole));
  CALL(QMP_comm_free(part));
  FAILS(QMP_INVALID_ARG, QMP_comm_barrier(part));
}

static void clocks(void) {
  const double before = QMP_time();
  EXPECT(QMP_profcontrol(1) == 0);
  QMP_reset_total_qmp_time();
  CALL(QMP_barrier());
  EXPECT(QMP_profcontrol(0) == 1);
  const double after = QMP_time(), inside = QMP_get_total_qmp_time();
  EXPECT(after >= before && inside >= 0 && inside <= after - before);
  if (nodes > 1) EXPECT(inside > 0);
  CALL(QMP_barrier());
  EXPECT(QMP_get_total_qmp_time() == inside);
}

int main(int argc, char** argv) {
  QMP_thread_level_t provided = QMP_THREAD_MULTIPLE;
  queries_before_and_after_init();
  EXPECT(QMP_verbose(0) == 0);
  CALL(QMP_init_msg_passing(&argc, &argv, QMP_THREAD_MULTIPLE, &provided));
  EXPECT(provided == QMP_THREAD_SERIALIZED);
  the_job();
  memory();
  messages();
  addresses_and_misuse();
  communicators();
  topology();
  layout();
  global(QMP_comm_get_default());
  global_on_the_default(node, nodes);
  clocks();
  CALL(QMP_barrier());
  if (QMP_is_primary_node()) printf("%d nodes: every call\n", nodes);
  QMP_finalize_msg_passing();
  EXPECT(!QMP_is_initialized());
  FAILS(QMP_NOT_INITED, QMP_barrier());
  return 0;
}
