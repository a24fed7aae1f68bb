/* velo_exchange COUNT: each of two nodes sends the other COUNT messages, and receives only when it has to:
 * while velo2_send() asks for it, and after the last one. Checks that all arrive once and in order. */
#include "velo_common.h"

static velo2_port_t port;
static velo2_connection_t peer;
static long received, times_asked;

static void receive_one(void) {
  uint64_t word = 0;
  uint32_t length = 0;
  uint32_t source = 0;
  uint8_t tag = 0;
  check(velo2_recv(&port, &word, sizeof word, &length, &source, &tag, 0), "velo2_recv");
  if (word != (uint64_t)received) {
    fprintf(stderr, "%llu instead of number %ld\n", (unsigned long long)word, received);
    exit(1);
  }
  ++received;
}

static void send_number(uint64_t number) {
  velo2_ret_t result;
  while ((result = velo2_send(&peer, &number, sizeof number, 0, 0)) == VELO2_RET_TRY_AGAIN) {
    ++times_asked;
    receive_one();
  }
  check(result, "velo2_send");
}

int main(int argc, char** argv) {
  const long count = atol(argv[argc - 1]);
  check(velo2_open(&port), "velo2_open");
  const velo2_nodeid_t other = 1 - velo2_get_nodeid(&port);
  check(velo2_connect(&port, &peer, other, 0), "velo2_connect");
  for (long i = 0; i < count; ++i) send_number((uint64_t)i);
  while (received < count) receive_one();
  check(velo2_close(&port), "velo2_close");
  if (other == 1) printf("%s\n", times_asked > 0 ? "asked to receive" : "never asked");
  return 0;
}
