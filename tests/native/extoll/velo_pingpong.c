/* velo_pingpong BYTES ROUNDS: node 0 and node 1; prints nothing, the run's virtual time is the result. */
#include <string.h>

#include "velo_common.h"

int main(int argc, char** argv) {
  const uint32_t bytes = (uint32_t)atoi(argv[argc - 2]);
  const int rounds = atoi(argv[argc - 1]);
  velo2_port_t port;
  velo2_connection_t peer;
  check(velo2_open(&port), "velo2_open");
  const velo2_nodeid_t me = velo2_get_nodeid(&port);
  check(velo2_connect(&port, &peer, (velo2_nodeid_t)(1 - me), 0), "velo2_connect");
  char out[120];
  char in[120];
  for (int round = 0; round < rounds; ++round) {
    memset(out, round + me, sizeof out);
    uint32_t length = 0;
    uint32_t source = 0;
    uint8_t tag = 0;
    if (me == 0) check(velo2_send(&peer, out, bytes, (uint8_t)round, 2), "velo2_send");
    check(velo2_recv(&port, in, sizeof in, &length, &source, &tag, 2), "velo2_recv");
    if (me == 1) check(velo2_send(&peer, out, bytes, (uint8_t)round, 2), "velo2_send");
    char expected[120];
    memset(expected, round + 1 - me, sizeof expected);
    if (length != bytes || source != (uint32_t)(1 - me) || tag != (uint8_t)round ||
        memcmp(in, expected, bytes)) {
      fprintf(stderr, "round %d: wrong message of %u bytes from %u\n", round, length, source);
      return 1;
    }
  }
  check(velo2_disconnect(&peer), "velo2_disconnect");
  check(velo2_close(&port), "velo2_close");
  return 0;
}
