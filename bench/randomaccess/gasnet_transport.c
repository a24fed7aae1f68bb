// GASNet-1: a bucket is a medium request.
#include "gasnet_process.h"

enum { updates_handler = 200 };

static void take_bucket(gasnet_token_t token, void* updates, size_t bytes) {
  (void)token;
  ++deliveries;
  take_updates(updates, (int)(bytes / sizeof(uint64_t)));
}

void transport_open(void) {
  gasnet_handlerentry_t table[] = {{updates_handler, (void (*)())take_bucket}};
  open_process(table, 1);
}

bool transport_may_lose(void) {
  return false;
}

void transport_send(int rank, const uint64_t* updates, int count) {
  check(gasnet_AMRequestMedium0((gasnet_node_t)rank, updates_handler, (void*)updates,
                                (size_t)count * sizeof *updates),
        "gasnet_AMRequestMedium0");
}
