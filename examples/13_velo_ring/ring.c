// A token goes around a ring of processes, by VELO alone: no MPI. One process a node.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <velo2.h>

enum { laps = 100 };

static void check(velo2_ret_t result, const char* call) {
  if (result == VELO2_RET_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", call, velo2_strerror(result));
  exit(1);
}

static double now_us(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(void) {
  velo2_port_t port;
  velo2_connection_t next;
  check(velo2_open(&port), "velo2_open");
  const int me = velo2_get_nodeid(&port);

  // `apenet run` places the processes on the nodes 0, 1, 2 ...: the first node without process ends the ring.
  int nodes = 0;
  while (velo2_connect(&port, &next, (velo2_nodeid_t)nodes, 0) == VELO2_RET_SUCCESS) ++nodes;
  check(velo2_connect(&port, &next, (velo2_nodeid_t)((me + 1) % nodes), 0), "velo2_connect");

  long token = 0;
  const double begin_us = now_us();
  for (int lap = 0; lap < laps; ++lap) {
    uint32_t length;
    uint32_t source;
    uint8_t tag;
    if (me == 0) check(velo2_send(&next, &token, sizeof token, 0, 0), "velo2_send");
    check(velo2_recv(&port, &token, sizeof token, &length, &source, &tag, 0), "velo2_recv");
    token += me;
    if (me != 0) check(velo2_send(&next, &token, sizeof token, 0, 0), "velo2_send");
  }
  if (me == 0) {
    printf("%d processes, %d laps: token %ld, %.3f us a hop\n", nodes, laps, token,
           (now_us() - begin_us) / laps / nodes);
  }
  check(velo2_close(&port), "velo2_close");
  return 0;
}
