// layer_bench: the published tests at one layer of software over the card, in real processes.
//
// The definitions, and the order of the calls on each side, are those of the card's own tests
// (docs/reference/tests.md, src/runtime/scripted/card_test_scripts.cpp), so that the times of two layers
// differ by what their software does. The number of repetitions depends only on the arguments.
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halo.h"
#include "layer.h"

enum { exit_failed = 1, exit_bad_input = 2, warm_up_rounds = 2, most_channels = 64 };

struct Test {
  const char* name;
  double (*run)(long bytes);  // microseconds of all repetitions, on this side
  double divisor;             // divides the time of one repetition
  double bytes_multiplier;    // bytes moved in that time, relative to those of a message
  // Repetitions of small messages, unless the program's arguments say. As in the card's tests: enough
  // messages for the start and end of a stream to be negligible.
  long iterations;
  long window;       // the default; 0: no window
  bool takes_turns;  // each message is on one channel, and not on all
};

struct Arguments {
  const struct Test* test;
  long bytes;
  long iterations;  // 0: chosen by the test
  long window;
  int channels;
  struct Halo halo;  // without dimensions: none
  const char* output;
};
static struct Arguments arguments = {.bytes = 16, .channels = 1};

void fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  fprintf(stderr, "layer_bench: ");
  vfprintf(stderr, format, values);
  fprintf(stderr, "\n");
  va_end(values);
  exit(exit_failed);
}

static void send_all(long bytes, bool awaited) {
  for (int channel = 0; channel < arguments.channels; ++channel) layer_send(channel, bytes, awaited);
}

static void expect_all(long bytes) {
  for (int channel = 0; channel < arguments.channels; ++channel) layer_expect(channel, bytes);
}

static void take_all(void) {
  for (int channel = 0; channel < arguments.channels; ++channel) layer_take(channel);
}

static void receive_all(long bytes) {
  expect_all(bytes);
  take_all();
}

static void await_all(void) {
  for (int channel = 0; channel < arguments.channels; ++channel) layer_await_sent(channel);
}

static bool is_first(void) {
  return layer_rank() == 0;
}

static double rates(long bytes);

static long iterations_of(long bytes) {
  enum { few = 20, most_small_bytes = 8192 };
  if (arguments.iterations > 0) return arguments.iterations;
  const bool is_many = bytes <= most_small_bytes || arguments.test->run == rates;
  return is_many ? arguments.test->iterations : few;
}

static double round_trips(long bytes) {
  const long count = iterations_of(bytes);
  double begin_us = 0;
  for (long i = 0; i < warm_up_rounds + count; ++i) {
    if (i == warm_up_rounds) begin_us = layer_time_us();
    if (is_first()) send_all(bytes, false);
    receive_all(bytes);
    if (!is_first()) send_all(bytes, false);
  }
  return layer_time_us() - begin_us;
}

static double exchange(long bytes, bool awaits) {
  const long count = warm_up_rounds + iterations_of(bytes);
  const long window = arguments.window > 0 ? arguments.window : 1;
  double begin_us = 0;
  for (long i = 0; i < count + window - 1; ++i) {
    if (i == warm_up_rounds) begin_us = layer_time_us();
    if (i < count) send_all(bytes, awaits);
    if (i + 1 < window) continue;
    receive_all(bytes);
    if (awaits) await_all();
  }
  return layer_time_us() - begin_us;
}

static double ping_pings(long bytes) {
  return exchange(bytes, false);
}

static double sendrecvs(long bytes) {
  return exchange(bytes, true);
}

// The receiver says that it is ready, and at the end that it has everything.
static void tell_first(void) {
  if (is_first()) {
    layer_expect(0, 0);
    layer_take(0);
  } else {
    layer_send(0, 0, false);
  }
}

static void take_stream(long bytes, long count, long ahead) {
  for (long i = 0; i < ahead; ++i) expect_all(bytes);
  for (long i = 0; i < count; ++i) {
    take_all();
    if (i + ahead < count) expect_all(bytes);
  }
}

static double stream(long bytes, bool awaits, bool closes) {
  const long count = iterations_of(bytes);
  const long window = arguments.window < count ? arguments.window : count;
  tell_first();
  const double begin_us = layer_time_us();
  if (is_first()) {
    long awaited = 0;
    for (long i = 0; i < count; ++i) {
      if (window > 0 && i >= window) {
        await_all();
        ++awaited;
      }
      send_all(bytes, awaits);
    }
    for (; awaits && awaited < count; ++awaited) await_all();
    if (closes) tell_first();
  } else {
    take_stream(bytes, count, window > 1 ? window : 1);
    if (closes) tell_first();
  }
  return is_first() ? layer_time_us() - begin_us : 0;
}

static double one_ways(long bytes) {
  return stream(bytes, false, true);
}

static double windows(long bytes) {
  return stream(bytes, true, true);
}

static double flushes(long bytes) {
  return stream(bytes, true, false);
}

// Each channel in turn. A window begins when the window before the previous one has left.
static void put_stream(long bytes, long count) {
  const long window = arguments.window;
  const int channels = arguments.channels;
  for (long i = 0; i < count; ++i) {
    const long first_of_window = i / window * window;
    if (i == first_of_window && i >= 2 * window) layer_await_sent((int)((i - window - 1) % channels));
    const int channel = (int)(i % channels);
    const bool awaited = (i + 1) % window == 0;
    if (i + channels >= count) {
      layer_send(channel, bytes, awaited);
    } else {
      layer_put(channel, bytes, awaited);
    }
  }
}

// The receiver is told of the last put of each channel, and of all where the layer cannot put silently.
static double rates(long bytes) {
  const long count = iterations_of(bytes);
  const long told = layer_puts_silently && arguments.channels < count ? arguments.channels : count;
  tell_first();
  const double begin_us = layer_time_us();
  if (is_first()) {
    put_stream(bytes, count);
    tell_first();
    return layer_time_us() - begin_us;
  }
  const long ahead = arguments.window < told ? arguments.window : told;
  const long begin = count - told;
  for (long i = begin; i < begin + ahead; ++i) layer_expect((int)(i % arguments.channels), bytes);
  for (long i = begin; i < count; ++i) {
    layer_take((int)(i % arguments.channels));
    if (i + ahead < count) layer_expect((int)((i + ahead) % arguments.channels), bytes);
  }
  tell_first();
  return 0;
}

// The other process only waits for the end.
static double accesses(long bytes, bool gets) {
  const long count = warm_up_rounds + iterations_of(bytes);
  double begin_us = 0;
  tell_first();
  if (is_first()) {
    for (long i = 0; i < count; ++i) {
      if (i >= arguments.window) layer_end_access((int)((i - arguments.window) % arguments.channels));
      if (i == warm_up_rounds) begin_us = layer_time_us();
      layer_begin_access((int)(i % arguments.channels), bytes, gets);
    }
    const long left = arguments.window < count ? arguments.window : count;
    for (long i = count - left; i < count; ++i) layer_end_access((int)(i % arguments.channels));
    begin_us = layer_time_us() - begin_us;
    layer_send(0, 0, false);
    return begin_us;
  }
  layer_expect(0, 0);
  layer_take(0);
  return 0;
}

static double put_all(long bytes) {
  return accesses(bytes, false);
}

static double get_all(long bytes) {
  return accesses(bytes, true);
}

static double halos(long bytes) {
  (void)bytes;
  return exchange_halos(&arguments.halo, iterations_of(bytes));
}

static const struct Test tests[] = {
    {"pingpong", round_trips, 2, 1, 20, 0, false},
    {"pingping", ping_pings, 1, 1, 20, 0, false},
    {"roundtrip", round_trips, 1, 2, 20, 0, false},
    {"oneway", one_ways, 1, 1, 100, 0, false},
    {"unidirectional", windows, 1, 1, 100, 16, false},
    {"bidirectional", sendrecvs, 1, 2, 20, 1, false},
    {"flush", flushes, 1, 1, 100, 0, false},
    {"rate", rates, 1, 1, 2000, 64, true},
    {"put", put_all, 1, 1, 100, 1, true},
    {"get", get_all, 1, 1, 100, 1, true},
    {"halo", halos, 1, 1, 20, 0, false},
};
enum { test_count = sizeof tests / sizeof tests[0] };

__attribute__((noreturn)) static void refuse(const char* option, const char* value, const char* expected) {
  fprintf(stderr, "layer_bench: %s = '%s': expected %s\n", option, value, expected);
  exit(exit_bad_input);
}

static long parse_count(const char* option, const char* text, long limit) {
  char* end = NULL;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value < 0 || value > limit)
    refuse(option, text, "a whole number");
  return value;
}

// As many as fit, separated by `separator`.
static int parse_list(const char* option, const char* text, const char* separator, long* values) {
  char copy[64];
  int count = 0;
  if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy) refuse(option, text, "fewer characters");
  for (char* part = strtok(copy, separator); part != NULL; part = strtok(NULL, separator)) {
    if (count == most_dimensions) refuse(option, text, "at most three numbers");
    values[count++] = parse_count(option, part, 1L << 30);
  }
  return count;
}

static void parse_grid(const char* option, const char* text) {
  long extents[most_dimensions];
  arguments.halo.dimensions = parse_list(option, text, "x", extents);
  for (int d = 0; d < arguments.halo.dimensions; ++d) {
    if (extents[d] < 1 || extents[d] > 65536) refuse(option, text, "extents from 1 to 65536, such as 4x4x2");
    arguments.halo.grid[d] = (int)extents[d];
  }
}

static const struct Test* find_test(const char* name) {
  for (int i = 0; i < test_count; ++i) {
    if (strcmp(tests[i].name, name) == 0) return &tests[i];
  }
  refuse("--test", name, "a test of layer_bench.c");
}

static void parse(int argc, char** argv) {
  const char* window = "";
  arguments.test = &tests[0];
  for (int i = 1; i + 1 < argc; i += 2) {
    const char* option = argv[i];
    const char* value = argv[i + 1];
    if (strcmp(option, "--test") == 0) {
      arguments.test = find_test(value);
    } else if (strcmp(option, "--bytes") == 0) {
      arguments.bytes = parse_count(option, value, 1L << 30);
    } else if (strcmp(option, "--iterations") == 0) {
      arguments.iterations = parse_count(option, value, 1000000000);
    } else if (strcmp(option, "--window") == 0) {
      arguments.window = parse_count(option, value, 65536);
      window = value;
    } else if (strcmp(option, "--channels") == 0) {
      arguments.channels = (int)parse_count(option, value, most_channels);
    } else if (strcmp(option, "--grid") == 0) {
      parse_grid(option, value);
    } else if (strcmp(option, "--faces") == 0) {
      parse_list(option, value, ",", arguments.halo.face_bytes);
    } else if (strcmp(option, "--periodic") == 0) {
      arguments.halo.is_periodic = parse_count(option, value, 1) == 1;
    } else if (strcmp(option, "--output") == 0) {
      arguments.output = value;
    } else {
      refuse("option", option, "one of layer_bench.c");
    }
  }
  const long most = arguments.iterations > 0 ? arguments.iterations : arguments.test->iterations;
  if (arguments.window > most) {
    char expected[96];
    (void)snprintf(expected, sizeof expected, "at most the %ld messages of a size; more with --iterations",
                   most);
    refuse("--window", window, expected);
  }
  if (arguments.window == 0) arguments.window = arguments.test->window;
}

// All channels lead to the other of two processes.
static void connect_pair(void) {
  struct Slot slots[most_channels];
  for (int channel = 0; channel < arguments.channels; ++channel)
    slots[channel] = (struct Slot){.rank = 1 - layer_rank(), .there = channel, .queue = channel};
  layer_connect(slots, arguments.channels, arguments.bytes);
}

static void print_point(double time_us) {
  FILE* output = arguments.output == NULL ? stdout : fopen(arguments.output, "w");
  if (output == NULL) fail("--output = '%s': %s", arguments.output, strerror(errno));
  const int channels = arguments.test->takes_turns ? 1 : arguments.channels;
  const double moved = arguments.test->bytes_multiplier * (double)arguments.bytes * channels;
  fprintf(output, "{\"size_bytes\": %ld, \"time_us\": %.6f, \"bandwidth_mib_s\": %.6f}\n", arguments.bytes,
          time_us, moved / 1048576.0 / (time_us * 1e-6));
  if (output != stdout) fclose(output);
}

int main(int argc, char** argv) {
  parse(argc, argv);
  layer_open();
  if (arguments.test->run != halos) connect_pair();
  const double mine_us = arguments.test->run(arguments.bytes);
  if (is_first()) print_point(mine_us / (double)iterations_of(arguments.bytes) / arguments.test->divisor);
  layer_close();
  return 0;
}
