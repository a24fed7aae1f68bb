/* pingpong ROUNDS: round trips of short messages between nodes 0 and 1. */
#include <gasnet.h>

static volatile int requests, replies;

static void ping(gasnet_token_t token) {
  ++requests;
  GASNET_SAFE(gasnet_AMReplyShort0(token, 201));
}

static void pong(gasnet_token_t token) {
  (void)token;
  ++replies;
}

int main(int argc, char** argv) {
  gasnet_handlerentry_t table[] = {{200, (void (*)())ping}, {201, (void (*)())pong}};
  const int rounds = atoi(argv[1]);
  GASNET_SAFE(gasnet_init(&argc, &argv));
  GASNET_SAFE(gasnet_attach(table, 2, GASNET_PAGESIZE, 0));
  for (int i = 0; gasnet_mynode() == 0 && i < rounds; ++i) {
    GASNET_SAFE(gasnet_AMRequestShort0(1, 200));
    GASNET_BLOCKUNTIL(replies == i + 1);
  }
  if (gasnet_mynode() == 1) GASNET_BLOCKUNTIL(requests == rounds);
  gasnet_exit(0);
}
