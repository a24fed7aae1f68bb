// What the transports over GASNet-1 share. Each program has one transport, so the functions are defined here.
#ifndef APENET_RANDOM_ACCESS_GASNET_PROCESS_H
#define APENET_RANDOM_ACCESS_GASNET_PROCESS_H

#include <gasnet.h>

#include "transport.h"

static volatile long deliveries;  // handlers count here what transport_wait waits for

static void check(int code, const char* call) {
  if (code != GASNET_OK) fail("%s: %s", call, gasnet_ErrorDesc(code));
}

static void open_process(gasnet_handlerentry_t* table, int entries) {
  check(gasnet_init(NULL, NULL), "gasnet_init");
  check(gasnet_attach(table, entries, GASNET_PAGESIZE, 0), "gasnet_attach");
}

int transport_rank(void) {
  return (int)gasnet_mynode();
}

int transport_size(void) {
  return (int)gasnet_nodes();
}

void transport_close(void) {
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS), "gasnet_barrier_wait");
  gasnet_exit(0);
}

void transport_poll(void) {
  check(gasnet_AMPoll(), "gasnet_AMPoll");
}

void transport_wait(void) {
  const long before = deliveries;
  GASNET_BLOCKUNTIL(deliveries != before);
}

#endif
