// random_access: RandomAccess by the rules of the HPC Challenge (hpcchallenge.org), over the messages of one
// library.
//
// A table of 2^n words of 64 bits is spread over the processes, at first with T[i] = i. Each process draws
// four numbers a for each of its words from one stream, and the word a mod 2^n becomes T[a mod 2^n] xor a,
// wherever it lies. A process holds at most 1024 updates back, and then sends the most for one process. At
// the end its words are compared with what the stream makes of them without messages. The numbers of words
// and processes are powers of two. By the rules a process makes four updates for each of its words; UPDATES
// changes that.
//
// A process knows from the stream how many updates the others send it, and ends when they are there. Messages
// that say so, one for each pair of processes, are nothing beside the updates of a table as large as the
// rules want it, but many beside those of a small one.
//
// The rules begin the stream at place 0. There its numbers have few bits set, and in a small table a third of
// all updates go to process 0. So this program begins at another place.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "transport.h"

enum { exit_failed = 1, exit_bad_input = 2, most_processes = 65536 };

struct Bucket {
  int count;
  uint64_t updates[most_pending];
};

static uint64_t* table;
static uint64_t words;             // words of all processes
static uint64_t local_words;       // words of this process
static uint64_t own_updates;       // that this process makes, as each other one
static uint64_t updates_expected;  // updates of other processes for this one
static uint64_t updates_taken;
static int look_ahead;

void fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  fprintf(stderr, "random_access: ");
  vfprintf(stderr, format, values);
  fprintf(stderr, "\n");
  va_end(values);
  exit(exit_failed);
}

static void* allocate(size_t count, size_t bytes) {
  void* memory = calloc(count, bytes);
  if (memory == NULL) fail("no memory for %zu times %zu bytes", count, bytes);
  return memory;
}

static const uint64_t first_place = 1000000000000000003U;

static uint64_t next_of(uint64_t number) {
  const uint64_t polynomial = 7;
  return number << 1 ^ ((int64_t)number < 0 ? polynomial : 0);
}

// The number at a place of the stream, whose period is 2^63 - 1 over an odd factor (HPC Challenge,
// utility.c): x^n modulo the polynomial, by squaring.
static uint64_t number_at(uint64_t place) {
  enum { bits = 64 };
  const uint64_t period = 1317624576693539401U;
  uint64_t squares[bits];
  uint64_t power = 1;
  for (int i = 0; i < bits; ++i) {
    squares[i] = power;
    power = next_of(next_of(power));
  }
  place %= period;
  if (place == 0) return 1;
  int bit = bits - 2;
  while ((place >> bit & 1) == 0) --bit;
  uint64_t number = 2;
  while (bit > 0) {
    uint64_t squared = 0;
    for (int i = 0; i < bits; ++i) {
      if ((number >> i & 1) != 0) squared ^= squares[i];
    }
    number = squared;
    --bit;
    if ((place >> bit & 1) != 0) number = next_of(number);
  }
  return number;
}

static int owner_of(uint64_t number) {
  return (int)((number & (words - 1)) / local_words);
}

uint64_t* word_of(uint64_t number) {
  return &table[(number & (words - 1)) % local_words];
}

static void apply(uint64_t number) {
  *word_of(number) ^= number;
}

void take_updates(const uint64_t* updates, int count) {
  for (int i = 0; i < count; ++i) apply(updates[i]);
  updates_taken += (uint64_t)count;
}

void took_update(void) {
  ++updates_taken;
}

static int fullest(const struct Bucket* buckets) {
  int found = 0;
  for (int rank = 1; rank < transport_size(); ++rank) {
    if (buckets[rank].count > buckets[found].count) found = rank;
  }
  return found;
}

static void send_bucket(struct Bucket* bucket, int rank) {
  transport_send(rank, bucket->updates, bucket->count);
  bucket->count = 0;
}

static void update_all(struct Bucket* buckets) {
  const int self = transport_rank();
  uint64_t number = number_at(first_place + own_updates * (uint64_t)self);
  int pending = 0;
  for (uint64_t i = 0; i < own_updates; ++i) {
    number = next_of(number);
    const int owner = owner_of(number);
    if (owner == self) {
      apply(number);
      continue;
    }
    struct Bucket* bucket = &buckets[owner];
    bucket->updates[bucket->count++] = number;
    if (++pending < look_ahead) continue;
    const int chosen = fullest(buckets);
    pending -= buckets[chosen].count;
    send_bucket(&buckets[chosen], chosen);
    transport_poll();
  }
}

// Each process begins with the one behind it, so that they do not all send to the same one.
static void finish(struct Bucket* buckets) {
  const int size = transport_size();
  for (int step = 1; step < size; ++step) {
    const int rank = (transport_rank() + step) % size;
    if (buckets[rank].count == 0) continue;
    send_bucket(&buckets[rank], rank);
    transport_poll();
  }
  while (updates_taken < updates_expected) transport_wait();
}

// Makes the table, and returns what all updates make of it. Sets updates_expected.
static uint64_t* foresee(void) {
  const int self = transport_rank();
  const uint64_t own_begin = own_updates * (uint64_t)self;
  uint64_t* wanted = allocate(local_words, sizeof *wanted);
  table = wanted;
  for (uint64_t i = 0; i < local_words; ++i) wanted[i] = local_words * (uint64_t)self + i;
  uint64_t number = number_at(first_place);
  for (uint64_t i = 0; i < own_updates * (uint64_t)transport_size(); ++i) {
    number = next_of(number);
    if (owner_of(number) != self) continue;
    apply(number);
    if (i - own_begin >= own_updates) ++updates_expected;
  }
  table = allocate(local_words, sizeof *table);
  for (uint64_t i = 0; i < local_words; ++i) table[i] = local_words * (uint64_t)self + i;
  return wanted;
}

// Returns how many words are not what all updates make of them.
static uint64_t count_errors(const uint64_t* wanted) {
  uint64_t errors = 0;
  for (uint64_t i = 0; i < local_words; ++i) errors += table[i] != wanted[i] ? 1 : 0;
  return errors;
}

// The program's time is from the first beginning to the last end. OUTPUT.RANK has those of one process, and
// its wrong words.
static void write_result(const char* output, double begin_us, double end_us, uint64_t wrong) {
  char path[4096];
  const int length = snprintf(path, sizeof path, "%s.%d", output, transport_rank());
  FILE* file = length < (int)sizeof path ? fopen(path, "w") : NULL;
  if (file == NULL) fail("OUTPUT = '%s' cannot be written", output);
  fprintf(file, "{\"updates\": %llu, \"begin_us\": %.6f, \"end_us\": %.6f, \"wrong\": %llu}\n",
          (unsigned long long)own_updates, begin_us, end_us, (unsigned long long)wrong);
  fclose(file);
}

static double time_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void refuse(const char* argument, const char* value, const char* expected) {
  fprintf(stderr, "random_access: %s = '%s': expected %s\n", argument, value, expected);
  exit(exit_bad_input);
}

static uint64_t parse_count(const char* argument, const char* text, uint64_t most) {
  char* end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value == 0 || value > most)
    refuse(argument, text, "a whole number from 1");
  return value;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: random_access WORDS_A_PROCESS UPDATES LOOK_AHEAD OUTPUT\n");
    return exit_bad_input;
  }
  local_words = parse_count("WORDS_A_PROCESS", argv[1], UINT64_C(1) << 40);
  if ((local_words & (local_words - 1)) != 0) refuse("WORDS_A_PROCESS", argv[1], "a power of two");
  own_updates = parse_count("UPDATES", argv[2], UINT64_C(1) << 42);
  look_ahead = (int)parse_count("LOOK_AHEAD", argv[3], most_pending);
  transport_open();
  const int size = transport_size();
  if (size < 2 || size > most_processes || (size & (size - 1)) != 0)
    fail("%d processes: expected a power of two, from 2", size);
  words = local_words * (uint64_t)size;
  uint64_t* wanted = foresee();
  struct Bucket* buckets = allocate((size_t)size, sizeof *buckets);

  const double begin_us = time_us();
  update_all(buckets);
  finish(buckets);
  const double end_us = time_us();

  const uint64_t errors = count_errors(wanted);
  // Where updates may be lost, the rules allow some errors in the table of all processes: whoever reads the
  // results adds them up.
  if (errors > 0 && !transport_may_lose())
    fail("%llu of %llu words are wrong", (unsigned long long)errors, (unsigned long long)local_words);
  write_result(argv[4], begin_us, end_us, errors);
  free(table);
  free(wanted);
  free(buckets);
  transport_close();
  return 0;
}
