/* velo_all: every process sends one message to every process, itself included, wherever it is. */
#include "velo_common.h"

enum { most = 64 };

int main(void) {
  velo2_port_t port;
  check(velo2_open(&port), "velo2_open");
  const uint32_t me = velo2_get_nodeid(&port) | (uint32_t)velo2_get_vpid(&port) << 16;
  velo2_connection_t peers[most];
  uint32_t names[most];
  int count = 0;
  for (velo2_nodeid_t node = 0;; ++node) {
    velo2_vpid_t vpid = 0;
    velo2_ret_t result;
    while ((result = velo2_connect(&port, &peers[count], node, vpid)) == VELO2_RET_SUCCESS)
      names[count++] = node | (uint32_t)vpid++ << 16;
    if (result == VELO2_RET_INVALID_NODE) break;
  }
  for (int i = 0; i < count; ++i)
    check(velo2_send(&peers[i], &names[i], sizeof names[i], 9, 3), "velo2_send");
  int seen[most] = {0};
  for (int left = count; left > 0; --left) {
    uint32_t to;
    uint32_t length;
    uint32_t source;
    uint8_t tag;
    check(velo2_recv(&port, &to, sizeof to, &length, &source, &tag, 3), "velo2_recv");
    int from = 0;
    while (from < count && names[from] != source) ++from;
    if (to != me || from == count || seen[from]++ != 0) return 1;
  }
  printf("%d\n", count);
  return 0;
}
