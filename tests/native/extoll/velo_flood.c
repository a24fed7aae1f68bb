/* velo_flood COUNT PAUSE_US: every node but 0 sends COUNT messages to node 0, which first sleeps. Node 0
 * checks that each sender's messages arrive once, whole and in order. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "velo_common.h"

enum { most_senders = 64 };

static int receive_all(velo2_port_t* port, int senders, int count, long pause_us) {
  const struct timespec pause = {pause_us / 1000000, pause_us % 1000000 * 1000};
  nanosleep(&pause, NULL);
  int next[most_senders] = {0};
  for (long left = (long)senders * count; left > 0; --left) {
    uint64_t word = 0;
    uint32_t length = 0;
    uint32_t source = 0;
    uint8_t tag = 0;
    check(velo2_recv(port, &word, sizeof word, &length, &source, &tag, 0), "velo2_recv");
    const int expected = next[source]++;
    if (length != sizeof word || word != ((uint64_t)source << 32 | (uint32_t)expected) ||
        tag != (uint8_t)expected) {
      fprintf(stderr, "from %u: %llx instead of number %d\n", source, (unsigned long long)word, expected);
      return 1;
    }
  }
  uint64_t word;
  uint32_t length;
  uint32_t source;
  uint8_t tag;
  uint8_t mtt;
  if (velo2_probe_recv(port, &word, sizeof word, &length, &source, &tag, &mtt) != VELO2_RET_NO_MSG) return 1;
  printf("%ld messages\n", (long)senders * count);
  return 0;
}

int main(int argc, char** argv) {
  const int senders = atoi(argv[argc - 3]);
  const int count = atoi(argv[argc - 2]);
  velo2_port_t port;
  check(velo2_open(&port), "velo2_open");
  const velo2_nodeid_t me = velo2_get_nodeid(&port);
  if (me == 0) return receive_all(&port, senders, count, atol(argv[argc - 1]));
  velo2_connection_t peer;
  check(velo2_connect(&port, &peer, 0, 0), "velo2_connect");
  for (int i = 0; i < count; ++i) {
    const uint64_t word = (uint64_t)me << 32 | (uint32_t)i;
    check(velo2_send(&peer, &word, sizeof word, (uint8_t)i, 0), "velo2_send");
  }
  check(velo2_close(&port), "velo2_close");
  return 0;
}
