/* medium COUNT BYTES: node 0 sends that many medium requests of this size to node 1. */
#include <gasnet.h>

static volatile int requests;

static void take(gasnet_token_t token, void* data, size_t bytes) {
  (void)token;
  (void)data;
  (void)bytes;
  ++requests;
}

int main(int argc, char** argv) {
  static char data[8192];
  gasnet_handlerentry_t table[] = {{200, (void (*)())take}};
  const int count = atoi(argv[1]);
  const size_t bytes = (size_t)atol(argv[2]);
  GASNET_SAFE(gasnet_init(&argc, &argv));
  GASNET_SAFE(gasnet_attach(table, 1, GASNET_PAGESIZE, 0));
  for (int i = 0; gasnet_mynode() == 0 && i < count; ++i)
    GASNET_SAFE(gasnet_AMRequestMedium0(1, 200, data, bytes));
  if (gasnet_mynode() == 1) GASNET_BLOCKUNTIL(requests == count);
  gasnet_exit(0);
}
