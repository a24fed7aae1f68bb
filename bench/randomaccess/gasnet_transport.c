// GASNet-1: a bucket is a medium request.
#include "gasnet_process.h"

enum { updates_handler = 200, total_handler };

static void take_bucket(gasnet_token_t token, void* updates, size_t bytes) {
  (void)token;
  ++deliveries;
  take_updates(updates, (int)(bytes / sizeof(uint64_t)));
}

static void take_count(gasnet_token_t token, gasnet_handlerarg_t high, gasnet_handlerarg_t low) {
  (void)token;
  ++deliveries;
  take_total((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}

void transport_open(void) {
  gasnet_handlerentry_t table[] = {{updates_handler, (void (*)())take_bucket},
                                   {total_handler, (void (*)())take_count}};
  open_process(table, sizeof table / sizeof table[0]);
}

bool transport_may_lose(void) {
  return false;
}

void transport_send(int rank, const uint64_t* updates, int count) {
  check(gasnet_AMRequestMedium0((gasnet_node_t)rank, updates_handler, (void*)updates,
                                (size_t)count * sizeof *updates),
        "gasnet_AMRequestMedium0");
}

void transport_send_total(int rank, uint64_t updates) {
  check(gasnet_AMRequestShort2((gasnet_node_t)rank, total_handler, (gasnet_handlerarg_t)(updates >> 32),
                               (gasnet_handlerarg_t)(updates & UINT32_MAX)),
        "gasnet_AMRequestShort2");
}
