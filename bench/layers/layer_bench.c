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

#include "layer.h"

enum { exit_failed = 1, exit_bad_input = 2, warm_up_rounds = 2 };

struct Test {
  const char* name;
  double (*run)(long bytes);  // microseconds of all repetitions, on this side
  double divisor;             // of the time of one repetition
  double bytes_multiplier;    // bytes moved in that time, relative to those of a message
  bool awaits;
  long window;  // the default; 0: no window
};

struct Arguments {
  const struct Test* test;
  long bytes;
  long iterations;  // 0: chosen by the test
  long window;
  int channels;
  const char* output;
};
int layer_awaits;
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

static void send_all(long bytes) {
  for (int channel = 0; channel < arguments.channels; ++channel) layer_send(channel, bytes);
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

// As the card's tests: enough messages for the start and end of a stream to be negligible.
static long iterations_of(long bytes) {
  const bool is_stream = strcmp(arguments.test->name, "oneway") == 0 ||
                         strcmp(arguments.test->name, "unidirectional") == 0 ||
                         strcmp(arguments.test->name, "flush") == 0;
  if (arguments.iterations > 0) return arguments.iterations;
  return is_stream && bytes <= 8192 ? 100 : 20;
}

static double round_trips(long bytes) {
  const long count = iterations_of(bytes);
  double begin_us = 0;
  for (long i = 0; i < warm_up_rounds + count; ++i) {
    if (i == warm_up_rounds) begin_us = layer_time_us();
    if (is_first()) send_all(bytes);
    receive_all(bytes);
    if (!is_first()) send_all(bytes);
  }
  return layer_time_us() - begin_us;
}

static double exchange(long bytes, bool awaits) {
  const long count = warm_up_rounds + iterations_of(bytes);
  const long window = arguments.window > 0 ? arguments.window : 1;
  double begin_us = 0;
  for (long i = 0; i < count + window - 1; ++i) {
    if (i == warm_up_rounds) begin_us = layer_time_us();
    if (i < count) send_all(bytes);
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
    layer_send(0, 0);
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
      send_all(bytes);
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

static const struct Test tests[] = {
    {"pingpong", round_trips, 2, 1, false, 0},   {"pingping", ping_pings, 1, 1, false, 0},
    {"roundtrip", round_trips, 1, 2, false, 0},  {"oneway", one_ways, 1, 1, false, 0},
    {"unidirectional", windows, 1, 1, true, 16}, {"bidirectional", sendrecvs, 1, 2, true, 1},
    {"flush", flushes, 1, 1, true, 0},
};
enum { test_count = sizeof tests / sizeof tests[0] };

static void refuse(const char* option, const char* value, const char* expected) {
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

static void parse(int argc, char** argv) {
  arguments.test = &tests[0];
  for (int i = 1; i + 1 < argc; i += 2) {
    const char* option = argv[i];
    const char* value = argv[i + 1];
    if (strcmp(option, "--test") == 0) {
      int number = 0;
      while (number < test_count && strcmp(tests[number].name, value) != 0) ++number;
      if (number == test_count) refuse(option, value, "a test of layer_bench.c");
      arguments.test = &tests[number];
    } else if (strcmp(option, "--bytes") == 0) {
      arguments.bytes = parse_count(option, value, 1L << 30);
    } else if (strcmp(option, "--iterations") == 0) {
      arguments.iterations = parse_count(option, value, 1000000000);
    } else if (strcmp(option, "--window") == 0) {
      arguments.window = parse_count(option, value, 65536);
    } else if (strcmp(option, "--channels") == 0) {
      arguments.channels = (int)parse_count(option, value, 64);
    } else if (strcmp(option, "--output") == 0) {
      arguments.output = value;
    } else {
      refuse("option", option, "one of layer_bench.c");
    }
  }
  if (arguments.window == 0) arguments.window = arguments.test->window;
}

int main(int argc, char** argv) {
  parse(argc, argv);
  const long bytes = arguments.bytes;
  layer_awaits = arguments.test->awaits;
  layer_open(bytes, arguments.channels);
  const double mine_us = arguments.test->run(bytes);
  const double time_us = mine_us / (double)iterations_of(bytes) / arguments.test->divisor;
  if (is_first()) {
    FILE* output = arguments.output == NULL ? stdout : fopen(arguments.output, "w");
    if (output == NULL) fail("--output = '%s': %s", arguments.output, strerror(errno));
    const double moved = arguments.test->bytes_multiplier * (double)bytes * arguments.channels;
    fprintf(output, "{\"size_bytes\": %ld, \"time_us\": %.6f, \"bandwidth_mib_s\": %.6f}\n", bytes, time_us,
            moved / 1048576.0 / (time_us * 1e-6));
    if (output != stdout) fclose(output);
  }
  layer_close();
  return 0;
}
