// QMP, the message passing of lattice QCD programs.
#include <qmp.h>
#include <stdlib.h>

#include "comm.h"
#include "support.h"

struct CommHalo {
  int messages;
  QMP_msgmem_t memory[2 * directions];
  QMP_msghandle_t all;  // owns the handles of the messages; NULL if there are none
};

static void check(QMP_status_t status, const char* call) {
  if (status != QMP_SUCCESS) fail("%s: %s", call, QMP_error_string(status));
}

int comm_open(const int grid[dimensions]) {
  char name[] = "lqcd";
  char* arguments[] = {name, NULL};
  char** argv = arguments;
  int argc = 1;
  QMP_thread_level_t level = QMP_THREAD_SINGLE;
  check(QMP_init_msg_passing(&argc, &argv, level, &level), "QMP_init_msg_passing");
  check(QMP_declare_logical_topology(grid, dimensions), "QMP_declare_logical_topology");
  return QMP_get_node_number();
}

void comm_place(int place[dimensions]) {
  const int* coordinates = QMP_get_logical_coordinates();
  for (int mu = 0; mu < dimensions; ++mu) place[mu] = coordinates[mu];
}

static QMP_msgmem_t declare_memory(struct CommHalo* halo, const void* memory, size_t bytes) {
  const QMP_msgmem_t declared = QMP_declare_msgmem(memory, bytes);
  if (declared == NULL) check(QMP_get_error_number(NULL), "QMP_declare_msgmem");
  halo->memory[halo->messages++] = declared;
  return declared;
}

struct CommHalo* comm_declare_halo(const struct CommFace faces[directions]) {
  struct CommHalo* halo = allocate(1, sizeof *halo);
  QMP_msghandle_t handles[2 * directions];
  int count = 0;
  for (int direction = 0; direction < directions; ++direction) {
    const struct CommFace* face = &faces[direction];
    if (face->bytes == 0) continue;
    const QMP_msgmem_t in = declare_memory(halo, face->in, face->bytes);
    const QMP_msgmem_t out = declare_memory(halo, face->out, face->bytes);
    const int way = direction % 2 == 0 ? 1 : -1;
    handles[count++] = QMP_declare_receive_relative(in, direction / 2, way, 0);
    handles[count++] = QMP_declare_send_relative(out, direction / 2, way, 0);
  }
  for (int i = 0; i < count; ++i) {
    if (handles[i] == NULL) check(QMP_get_error_number(NULL), "QMP_declare_send_relative");
  }
  halo->all = count > 0 ? QMP_declare_multiple(handles, count) : NULL;
  if (count > 0 && halo->all == NULL) check(QMP_get_error_number(NULL), "QMP_declare_multiple");
  return halo;
}

void comm_start(struct CommHalo* halo) {
  if (halo->all != NULL) check(QMP_start(halo->all), "QMP_start");
}

void comm_advance(struct CommHalo* halo) {
  if (halo->all != NULL) QMP_is_complete(halo->all);
}

void comm_wait(struct CommHalo* halo) {
  if (halo->all != NULL) check(QMP_wait(halo->all), "QMP_wait");
}

void comm_free_halo(struct CommHalo* halo) {
  if (halo->all != NULL) QMP_free_msghandle(halo->all);
  for (int i = 0; i < halo->messages; ++i) QMP_free_msgmem(halo->memory[i]);
  free(halo);
}

void comm_sum(double* values, int count) {
  check(QMP_sum_double_array(values, count), "QMP_sum_double_array");
}

void comm_close(void) {
  QMP_finalize_msg_passing();
}
