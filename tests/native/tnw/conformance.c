/* Every call of tnw.h, and its misuse, on any number of processes of a torus with neighbours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnw.h>

static int failures;

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "conformance.c:%d: expected %s\n", line, what);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)
#define STATUS(call, wanted) expect((call) == (wanted), #call " to be " #wanted, __LINE__)

static int rank, size, channels;
static size_t max_bytes;

/* A message on each channel to the neighbour at `out`, which takes it from the opposite link. */
static void shift(tnw_link out) {
  const tnw_link in = (tnw_link)(out ^ 1);
  char* sent = malloc(max_bytes);
  char* taken = malloc(max_bytes);
  int source = -1;
  STATUS(tnw_neighbour(in, &source), TNW_OK);
  for (int channel = 0; channel < channels; ++channel) {
    const size_t bytes = channel == 0 ? 0 : max_bytes / (size_t)channel;
    size_t length = 1;
    memset(sent, 16 * rank + channel, max_bytes);
    memset(taken, -1, max_bytes);
    STATUS(tnw_credit(in, channel, taken, bytes), TNW_OK);
    STATUS(tnw_put(out, channel, sent, bytes), TNW_OK);
    STATUS(tnw_wait(in, channel, &length), TNW_OK);
    STATUS(tnw_wait_put(out, channel), TNW_OK);
    EXPECT(length == bytes);
    int wrong = 0;
    for (size_t i = 0; i < bytes; ++i) wrong += taken[i] != (char)(16 * source + channel);
    EXPECT(wrong == 0);
  }
  free(sent);
  free(taken);
}

/* Messages meet credits in the order in which both were posted. Polls see what is there, and no more. */
static void ordered(tnw_link out) {
  enum { count = 10 };
  const tnw_link in = (tnw_link)(out ^ 1);
  int sent[count], taken[count];
  size_t length = 0;
  for (int i = 0; i < count; ++i) {
    sent[i] = 100 * rank + i;
    STATUS(tnw_put(out, 1, &sent[i], sizeof sent[i]), TNW_OK);
  }
  for (int i = 0; i < count; ++i) STATUS(tnw_credit(in, 1, &taken[i], sizeof taken[i]), TNW_OK);
  int source = -1;
  tnw_neighbour(in, &source);
  long polls = 0;
  for (int i = 0; i < count; ++i) {
    tnw_status status;
    while ((status = tnw_poll(in, 1, &length)) == TNW_NOT_YET) ++polls;
    EXPECT(status == TNW_OK && length == sizeof taken[i] && taken[i] == 100 * source + i);
  }
  EXPECT(polls > 0 || source == rank);
  for (int i = 0; i < count; ++i) {
    while (tnw_poll_put(out, 1) == TNW_NOT_YET) continue;
  }
  STATUS(tnw_poll_put(out, 1), TNW_NO_PUT);
}

/* The buffer of a credit may be shorter than the message, if the card has credit for all its bytes. */
static void truncated(tnw_link out) {
  const tnw_link in = (tnw_link)(out ^ 1);
  const char sent[8] = "1234567";
  char first[5] = "----", second[8] = "-------";
  size_t length = 0;
  STATUS(tnw_credit(in, 0, first, 4), TNW_OK);
  STATUS(tnw_credit(in, 0, second, 8), TNW_OK);
  STATUS(tnw_put(out, 0, sent, 8), TNW_OK);
  STATUS(tnw_wait(in, 0, &length), TNW_TRUNCATED);
  EXPECT(length == 8 && memcmp(first, "1234", 5) == 0);
  STATUS(tnw_put(out, 0, sent, 4), TNW_OK);
  STATUS(tnw_wait(in, 0, &length), TNW_OK);
  EXPECT(length == 4 && memcmp(second, "1234---", 8) == 0);
}

static void misuse(tnw_link out) {
  const tnw_link in = (tnw_link)(out ^ 1);
  char byte = 0;
  STATUS(tnw_open(), TNW_IS_OPEN);
  STATUS(tnw_put(TNW_LINKS, 0, &byte, 1), TNW_BAD_LINK);
  STATUS(tnw_put((tnw_link)-1, 0, &byte, 1), TNW_BAD_LINK);
  STATUS(tnw_put(out, channels, &byte, 1), TNW_BAD_CHANNEL);
  STATUS(tnw_put(out, -1, &byte, 1), TNW_BAD_CHANNEL);
  STATUS(tnw_put(out, 0, &byte, max_bytes + 1), TNW_BAD_SIZE);
  STATUS(tnw_put(out, 0, NULL, 1), TNW_BAD_ADDRESS);
  STATUS(tnw_credit(in, 0, NULL, 1), TNW_BAD_ADDRESS);
  STATUS(tnw_credit(in, 0, &byte, max_bytes + 1), TNW_BAD_SIZE);
  STATUS(tnw_wait(in, channels - 1, NULL), TNW_NO_CREDIT);
  STATUS(tnw_poll(in, channels - 1, NULL), TNW_NO_CREDIT);
  STATUS(tnw_wait_put(out, channels - 1), TNW_NO_PUT);
  for (int status = 0; status <= TNW_NO_MEMORY; ++status)
    EXPECT(strlen(tnw_strerror((tnw_status)status)) > 0);
  EXPECT(strcmp(tnw_strerror((tnw_status)99), "no status of this library") == 0);
}

int main(void) {
  int at[3], extents[3];
  double begin_us = -1, end_us = -1;
  STATUS(tnw_rank(&rank, &size), TNW_NOT_OPEN);
  STATUS(tnw_close(), TNW_NOT_OPEN);
  STATUS(tnw_open(), TNW_OK);
  STATUS(tnw_rank(&rank, &size), TNW_OK);
  STATUS(tnw_channels(&channels), TNW_OK);
  STATUS(tnw_max_bytes(&max_bytes), TNW_OK);
  STATUS(tnw_coordinates(at, extents), TNW_OK);
  STATUS(tnw_time_us(&begin_us), TNW_OK);
  for (int i = 0; i < 3; ++i) EXPECT(at[i] >= 0 && at[i] < extents[i]);
  /* Extents that are not used have a process of this place only at one end. */
  for (tnw_link out = TNW_X_PLUS; out < TNW_LINKS; ++out) {
    int there = -1;
    const tnw_status status = tnw_neighbour(out, &there);
    EXPECT(status == TNW_OK || status == TNW_NO_NEIGHBOUR || status == TNW_BAD_LINK);
    if (status != TNW_OK || tnw_neighbour((tnw_link)(out ^ 1), NULL) != TNW_OK) continue;
    shift(out);
    ordered(out);
    truncated(out);
    misuse(out);
  }
  STATUS(tnw_time_us(&end_us), TNW_OK);
  EXPECT(end_us > begin_us && begin_us >= 0);
  STATUS(tnw_close(), TNW_OK);
  STATUS(tnw_put(TNW_X_PLUS, 0, &rank, sizeof rank), TNW_NOT_OPEN);
  /* Open again, as a library in a program may. */
  STATUS(tnw_open(), TNW_OK);
  STATUS(tnw_close(), TNW_OK);
  if (failures == 0) printf("rank %d of %d: done\n", rank, size);
  return failures == 0 ? 0 : 1;
}
