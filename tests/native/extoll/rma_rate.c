/* rma_rate BYTES COUNT WINDOW: puts from node 0 to node 1, a requester notification for the last of each
 * window and a completer notification for the last of all. Immediate up to 8 bytes. */
#include "rma_common.h"

int main(int argc, char** argv) {
  const uint32_t bytes = (uint32_t)atoi(argv[argc - 3]);
  const int count = atoi(argv[argc - 2]);
  const int window = atoi(argv[argc - 1]);
  RMA2_Port port = open_port();
  const RMA2_Nodeid me = rma2_get_nodeid(port);
  RMA2_Handle peer = connect_to(port, (RMA2_Nodeid)(1 - me));
  uint64_t* memory = calloc(1, bytes + 8);
  RMA2_Region* region;
  const RMA2_NLA to = exchange(port, peer, register_at(port, memory, bytes + 8, &region));
  const RMA2_Command command = bytes <= 8 ? RMA2_IMMEDIATE_PUT : RMA2_QW_PUT;
  int done = 0;
  for (int i = 0; i < count && me == 0; ++i) {
    const int ends_window = (i + 1) % window == 0;
    if (i % window == 0 && i / window - done >= 2) {
      take(port, RMA2_REQUESTER_NOTIFICATION, command);
      ++done;
    }
    const RMA2_Notification_Spec spec =
        (ends_window ? RMA2_REQUESTER_NOTIFICATION : 0) | (i + 1 == count ? RMA2_COMPLETER_NOTIFICATION : 0);
    check(bytes <= 8 ? rma2_post_immediate_put(port, peer, bytes, (uint64_t)i, to, spec, RMA2_CMD_DEFAULT)
                     : rma2_post_put_qw(port, peer, region, 0, bytes, to, spec, RMA2_CMD_DEFAULT),
          "put");
  }
  for (; done < count / window && me == 0; ++done) take(port, RMA2_REQUESTER_NOTIFICATION, command);
  if (me == 1) take(port, RMA2_COMPLETER_NOTIFICATION, command);
  return 0;
}
