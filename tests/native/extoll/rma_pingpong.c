/* rma_pingpong BYTES ROUNDS: puts with completer notification between nodes 0 and 1, up to 8 bytes immediate.
 */
#include <string.h>

#include "rma_common.h"

int main(int argc, char** argv) {
  const uint32_t bytes = (uint32_t)atoi(argv[argc - 2]);
  const int rounds = atoi(argv[argc - 1]);
  RMA2_Port port = open_port();
  const RMA2_Nodeid me = rma2_get_nodeid(port);
  RMA2_Handle peer = connect_to(port, (RMA2_Nodeid)(1 - me));
  uint64_t* memory = calloc(2, bytes + 8);
  RMA2_Region* region;
  const RMA2_NLA mine = register_at(port, memory, 2 * (size_t)(bytes + 8), &region);
  const RMA2_NLA theirs = exchange(port, peer, mine);
  uint64_t* in = memory + (bytes + 8) / 8;
  const RMA2_NLA to = theirs + bytes + 8;
  for (int i = 0; i < 2 * rounds; ++i) {
    if (i % 2 == me) {
      memory[0] = (uint64_t)i;
      check(bytes <= 8 ? rma2_post_immediate_put(port, peer, bytes, memory[0], to,
                                                 RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT)
                       : rma2_post_put_qw(port, peer, region, 0, bytes, to, RMA2_COMPLETER_NOTIFICATION,
                                          RMA2_CMD_DEFAULT),
            "put");
    } else {
      RMA2_Notification noti =
          take(port, RMA2_COMPLETER_NOTIFICATION, bytes <= 8 ? RMA2_IMMEDIATE_PUT : RMA2_QW_PUT);
      EXPECT(rma2_noti_get_local_address(&noti) == mine + bytes + 8);
      EXPECT(rma2_noti_get_size(&noti) == bytes);
      EXPECT(rma2_noti_get_remote_nodeid(&noti) == 1 - me);
      EXPECT(in[0] == (uint64_t)i);
    }
  }
  exchange(port, peer, 0); /* the last put has been read */
  check(rma2_unregister(port, region), "rma2_unregister");
  check(rma2_disconnect(port, peer), "rma2_disconnect");
  check(rma2_close(port), "rma2_close");
  free(memory);
  return 0;
}
