/* velo_leave exit|close: node 0 takes one message of many and goes, without or with closing its port. Its
 * mailbox must not hold node 1 back for ever; node 2 shares the way and gets its messages. */
#include <string.h>

#include "velo_common.h"

enum { count = 3000 };

int main(int argc, char** argv) {
  velo2_port_t port;
  check(velo2_open(&port), "velo2_open");
  const velo2_nodeid_t me = velo2_get_nodeid(&port);
  uint64_t word = 0;
  uint32_t length;
  uint32_t source;
  uint8_t tag;
  if (me == 0) {
    check(velo2_recv(&port, &word, sizeof word, &length, &source, &tag, 0), "velo2_recv");
    if (strcmp(argv[argc - 1], "close") == 0) check(velo2_close(&port), "velo2_close");
    return 0;
  }
  velo2_connection_t peers[2];
  for (int i = 0; i < 2; ++i)
    check(velo2_connect(&port, &peers[i], (velo2_nodeid_t)(2 * i), 0), "velo2_connect");
  for (int i = 0; i < count; ++i) {
    for (int to = 0; to < 2 && me == 1; ++to)
      check(velo2_send(&peers[to], &word, sizeof word, 0, 0), "velo2_send");
    ++word;
    if (me == 1) continue;
    uint64_t got;
    check(velo2_recv(&port, &got, sizeof got, &length, &source, &tag, 0), "velo2_recv");
    if (got != (uint64_t)i) return 1;
  }
  printf("node %d: done\n", me);
  return 0;
}
