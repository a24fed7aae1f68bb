// What a layer of software over the card must offer, so that layer_bench.c can measure it. One file of this
// folder implements these functions for each layer. Every failure ends the program with a message.
//
// Two processes take part, and each talks to the other. A channel is a queue of the card, or a tag where the
// layer has no queues. Messages of a channel are taken in the order in which they were sent.
#ifndef APENET_LAYER_H
#define APENET_LAYER_H

// Opens the layer and prepares buffers for messages of up to `max_bytes` on each channel.
void layer_open(long max_bytes, int channels);
void layer_close(void);
int layer_rank(void);
// Virtual time, or the host's outside a simulation.
double layer_time_us(void);

// Begins a message to the other process. The layer may still read the buffer of the channel afterwards.
void layer_send(int channel, long bytes);
// Says that a message of this size will come, if the layer wants to know.
void layer_expect(int channel, long bytes);
// Waits for the oldest message of the channel that has not been taken.
void layer_take(int channel);
// Whether the test awaits its sends. A layer may otherwise spare the report.
extern int layer_awaits;
// Waits until the buffer of the oldest send on the channel that has not been awaited is free.
void layer_await_sent(int channel);

void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
