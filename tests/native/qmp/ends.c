/* Ends in the way that the argument names. */
#include <string.h>

#include "checks.h"

int main(int argc, char** argv) {
  CALL(QMP_init_msg_passing(&argc, &argv, QMP_THREAD_FUNNELED, NULL));
  EXPECT(argc == 2);
  const int node = QMP_get_node_number();
  if (strcmp(argv[1], "abort") == 0) {
    if (node == 1) QMP_abort_string(3, "no more lattice");
    CALL(QMP_barrier());
  } else if (strcmp(argv[1], "finalize") == 0) {
    static char byte;
    QMP_msgmem_t memory = QMP_declare_msgmem(&byte, 1);
    if (node == 0) CALL(QMP_start(QMP_declare_receive_from(memory, 1, 0)));
  } else {
    QMP_info("site %d", 10 * node);
  }
  QMP_finalize_msg_passing();
  return 0;
}
