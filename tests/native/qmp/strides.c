/* Half a round trip of messages of so many bytes, in us: in one piece, and in blocks of 64 bytes with gaps.
 */
#include "checks.h"

enum { TURNS = 10, BLOCK = 64 };

static double half_us(QMP_msgmem_t out, QMP_msgmem_t in) {
  const int other = 1 - QMP_get_node_number();
  QMP_msghandle_t send = QMP_declare_send_to(out, other, 0);
  QMP_msghandle_t receive = QMP_declare_receive_from(in, other, 0);
  CALL(QMP_barrier());
  const double begin = QMP_time();
  for (int turn = 0; turn < TURNS; ++turn) {
    CALL(QMP_start(receive));
    if (other == 1) CALL(QMP_start(send));
    CALL(QMP_wait(receive));
    if (other == 0) CALL(QMP_start(send));
    CALL(QMP_wait(send));
  }
  const double us = 1e6 * (QMP_time() - begin) / (2 * TURNS);
  QMP_free_msghandle(send);
  QMP_free_msghandle(receive);
  QMP_free_msgmem(out);
  QMP_free_msgmem(in);
  return us;
}

int main(int argc, char** argv) {
  CALL(QMP_init_msg_passing(&argc, &argv, QMP_THREAD_SINGLE, NULL));
  EXPECT(argc > 1 && QMP_get_number_of_nodes() == 2);
  if (QMP_is_primary_node()) printf("%-10s %12s %12s\n", "# bytes", "one piece", "strided");
  for (int a = 1; a < argc; ++a) {
    const int blocks = atoi(argv[a]) / BLOCK;
    const size_t bytes = (size_t)blocks * BLOCK;
    char* const out = calloc(2, bytes);
    char* const in = calloc(2, bytes);
    const double plain = half_us(QMP_declare_msgmem(out, bytes), QMP_declare_msgmem(in, bytes));
    const double strided = half_us(QMP_declare_strided_msgmem(out, BLOCK, blocks, 2 * BLOCK),
                                   QMP_declare_strided_msgmem(in, BLOCK, blocks, 2 * BLOCK));
    if (QMP_is_primary_node()) printf("%-10zu %12.3f %12.3f\n", bytes, plain, strided);
    free(out);
    free(in);
  }
  QMP_finalize_msg_passing();
  return 0;
}
