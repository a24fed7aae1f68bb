// Two neighbours of QPACE's torus pass a message to and fro with tnw_put and tnw_credit, in three orders of
// these calls, and then show what a missing credit holds back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnw.h>

#include "apenet_compute.h"

enum { short_bytes = 128, most_bytes = 2048, rounds = 20 };
static const double work_s = 10e-6;

static char outgoing[most_bytes], incoming[most_bytes];
static int rank;
static tnw_link link_to_other;

static void check(tnw_status status, const char* call) {
  if (status == TNW_OK) return;
  fprintf(stderr, "pingpong: rank %d: %s: %s\n", rank, call, tnw_strerror(status));
  exit(1);
}

static void put(int channel, size_t bytes) {
  check(tnw_put(link_to_other, channel, outgoing, bytes), "tnw_put");
}
static void credit(int channel, size_t bytes) {
  check(tnw_credit(link_to_other, channel, incoming, bytes), "tnw_credit");
}
static void await_message(int channel) {
  check(tnw_wait(link_to_other, channel, NULL), "tnw_wait");
}
static void await_put(int channel) {
  check(tnw_wait_put(link_to_other, channel), "tnw_wait_put");
}

static double now_us(void) {
  double time_us = 0;
  check(tnw_time_us(&time_us), "tnw_time_us");
  return time_us;
}

// What a process does between two waits: it sends, permits the answer, and works.
static void credit_put_work(size_t bytes) {
  credit(0, bytes);
  put(0, bytes);
  ape_compute_seconds(work_s);
}
static void put_credit_work(size_t bytes) {
  put(0, bytes);
  credit(0, bytes);
  ape_compute_seconds(work_s);
}
static void put_work_credit(size_t bytes) {
  put(0, bytes);
  ape_compute_seconds(work_s);
  credit(0, bytes);
}

// Half a round trip.
static double pingpong_us(void (*step)(size_t), size_t bytes) {
  if (rank == 1) credit(0, bytes);
  const double begin_us = now_us();
  for (int i = 0; i < rounds; ++i) {
    if (rank == 1) await_message(0);
    if (rank == 1 && i == rounds - 1) {
      put(0, bytes);  // the last answer: no further message will come
    } else {
      step(bytes);
    }
    if (rank == 0) await_message(0);
    await_put(0);
  }
  return (now_us() - begin_us) / rounds / 2;
}

// Rank 0 sends one message on channel 0 and a second one on `channel`. Rank 1 permits the second at once, if
// it can, and the first after 20 us. Returns when rank 1 has the second message.
static double second_message_us(int channel) {
  if (rank == 0) {
    put(0, short_bytes);
    put(channel, short_bytes);
    await_put(0);
    await_put(channel);
    return 0;
  }
  const double begin_us = now_us();
  if (channel != 0) {
    credit(channel, short_bytes);
    await_message(channel);
  }
  const double had_us = now_us() - begin_us;
  ape_compute_seconds(20e-6);
  credit(0, short_bytes);
  await_message(0);
  if (channel != 0) return had_us;
  credit(0, short_bytes);
  await_message(0);
  return now_us() - begin_us;
}

int main(int argc, char** argv) {
  int size = 0;
  check(tnw_open(), "tnw_open");
  check(tnw_rank(&rank, &size), "tnw_rank");
  if (size != 2) {
    fprintf(stderr, "pingpong: expected two processes\n");
    return 2;
  }
  link_to_other = rank == 0 ? TNW_X_PLUS : TNW_X_MINUS;
  if (argc > 1 && strcmp(argv[1], "forgotten") == 0) {
    put(0, short_bytes);
    credit(1, short_bytes);  // the message comes on channel 0
    await_message(1);
  }
  if (rank == 0) printf("# Size [B]   credit, put, work   put, credit, work   put, work, credit [us]\n");
  for (size_t bytes = short_bytes; bytes <= most_bytes; bytes *= 4) {
    const double early_us = pingpong_us(credit_put_work, bytes);
    const double behind_us = pingpong_us(put_credit_work, bytes);
    const double late_us = pingpong_us(put_work_credit, bytes);
    if (rank == 0) printf("%-10zu %18.2f %19.2f %19.2f\n", bytes, early_us, behind_us, late_us);
  }
  const double other_us = second_message_us(1);
  const double same_us = second_message_us(0);
  if (rank == 1)
    printf("behind a message without credit: %.2f us on its channel, %.2f us on another one\n", same_us,
           other_us);
  check(tnw_close(), "tnw_close");
  return 0;
}
