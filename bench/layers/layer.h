// What a layer of software over the card must offer, so that layer_bench.c can measure it. One file of this
// folder implements these functions for each layer. Every failure ends the program with a message.
//
// A slot is one end of a stream of messages to a process and back. Messages of a slot are taken in the order
// in which they were sent. Their content means nothing: a buffer may be sent, or written, again at any time.
#ifndef APENET_LAYER_H
#define APENET_LAYER_H

#include <stdbool.h>

struct Slot {
  int rank;   // rank of the process at the other end
  int there;  // the number of the other end among that process's slots
  int queue;  // queue of the card, or virtual channel, for layers that let the program choose; -1: any
};

// Ranks are in the order of the nodes, one on each.
void layer_open(void);
int layer_rank(void);
// Prepares buffers for messages of up to `max_bytes` in each slot.
void layer_connect(const struct Slot* slots, int count, long max_bytes);
void layer_close(void);
// Virtual time, or the host's outside a simulation.
double layer_time_us(void);

// Begins a message. The layer may still read the slot's buffer afterwards. `awaited`: layer_await_sent() will
// be called for it. A layer may otherwise spare the report.
void layer_send(int slot, long bytes, bool awaited);
// Says that a message of this size will come, if the layer wants to know.
void layer_expect(int slot, long bytes);
// Waits for the oldest message of the slot that has not been taken.
void layer_take(int slot);
// Waits until the buffer of the oldest awaited send of the slot that has not been awaited yet is free.
void layer_await_sent(int slot);

// Whether layer_put() writes to the other process's memory without telling it. Otherwise layer_put() is
// layer_send().
extern const bool layer_puts_silently;
void layer_put(int slot, long bytes, bool awaited);

// One-sided access: writes the other process's memory, or reads it. layer_end_access() waits until the oldest
// access of the slot has ended, at both processes. The layers without it are linked with no_access.c.
void layer_begin_access(int slot, long bytes, bool gets);
void layer_end_access(int slot);

void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
