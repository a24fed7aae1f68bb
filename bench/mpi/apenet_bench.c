// apenet_bench: the published APENet tests at MPI level, for any MPI library and any network.
//
// The definitions are those of the 2005 measurements (R. Ammendola et al., PoS(LAT2005)100, section 2) and of
// the 2004 ping-pong (hep-lat/0409071): the calls on each side, when the clock is read, and the divisor of
// the time. Ranks work in pairs, each even one with the next odd one. Several pairs run at the same time, and
// the slowest counts. Only MPI_Wtime is used, and the number of repetitions depends only on the arguments, so
// that a run in virtual time repeats exactly.
#include "apenet_gpu.h"  // src/api/gpu, or include/ of the installed package

#include <errno.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { data_tag = 1, reply_tag = 2, exit_bad_input = 2, most_nodes = 4096, most_in_window = 65536 };

static const long largest_size_bytes = 1L << 30;  // the count arguments of MPI calls are int
static const size_t page_bytes = 4096;
static const double bytes_per_mib = 1024.0 * 1024.0;

// Where the buffers of a side lie.
enum Memory {
  memory_host,
  memory_gpu,         // MPI gets device pointers
  memory_gpu_staged,  // the program copies between the GPU and buffers of the host, which MPI gets
  memory_kinds
};
static const char* const memory_names[memory_kinds] = {"host", "gpu", "gpu-staged"};

// One side of a pair.
struct Pair {
  MPI_Comm team;  // the participating ranks; ranks 2k and 2k+1 are a pair
  int partner;
  bool even;
  char* outgoing;  // what MPI gets
  char* incoming;
  char* gpu_outgoing;  // NULL unless the program copies
  char* gpu_incoming;
};

struct Test {
  const char* name;
  const char* definition;
  // Runs `count` repetitions; tests with a window have up to `window` messages under way.
  void (*run)(const struct Pair* pair, int size_bytes, long count, long window);
  double divisor;           // divides the time of one repetition
  double bytes_multiplier;  // bytes moved in the divided time, relative to the message size
  bool has_window;
};

struct Arguments {
  const struct Test* test;
  long min_bytes;
  long max_bytes;
  long iterations;
  long window;
  enum Memory memory[2];  // for the even ranks, and for the odd ones
  int node_count;
  int nodes[most_nodes];
  const char* output;  // NULL: standard output only
};

static void before_send(const struct Pair* pair, int size_bytes) {
  if (pair->gpu_outgoing != NULL) ape_gpu_memcpy(pair->outgoing, pair->gpu_outgoing, (size_t)size_bytes);
}

static void after_receive(const struct Pair* pair, int size_bytes) {
  if (pair->gpu_incoming != NULL) ape_gpu_memcpy(pair->gpu_incoming, pair->incoming, (size_t)size_bytes);
}

static void send_data(const struct Pair* pair, int size_bytes) {
  before_send(pair, size_bytes);
  MPI_Send(pair->outgoing, size_bytes, MPI_CHAR, pair->partner, data_tag, pair->team);
}

static void receive_data(const struct Pair* pair, int size_bytes) {
  MPI_Recv(pair->incoming, size_bytes, MPI_CHAR, pair->partner, data_tag, pair->team, MPI_STATUS_IGNORE);
  after_receive(pair, size_bytes);
}

// Without overlap: the answer is sent when the whole message has arrived.
static void run_round_trips(const struct Pair* pair, int size_bytes, long count, long window) {
  (void)window;
  for (long i = 0; i < count; ++i) {
    if (pair->even) send_data(pair, size_bytes);
    receive_data(pair, size_bytes);
    if (!pair->even) send_data(pair, size_bytes);
  }
}

static void close_stream(const struct Pair* pair) {
  char reply = 0;
  if (pair->even) {
    MPI_Recv(&reply, 1, MPI_CHAR, pair->partner, reply_tag, pair->team, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(&reply, 1, MPI_CHAR, pair->partner, reply_tag, pair->team);
  }
}

// With as much overlap as network, card and queues allow.
static void run_streams(const struct Pair* pair, int size_bytes, long count, long window) {
  (void)window;
  for (long i = 0; i < count; ++i) {
    if (pair->even) {
      send_data(pair, size_bytes);
    } else {
      receive_data(pair, size_bytes);
    }
  }
  close_stream(pair);
}

static void end_one(const struct Pair* pair, MPI_Request* request, int size_bytes) {
  const bool received = *request != MPI_REQUEST_NULL && !pair->even;
  MPI_Wait(request, MPI_STATUS_IGNORE);
  if (received) after_receive(pair, size_bytes);
}

// A message begins when the one `window` before it has ended.
static void run_windows(const struct Pair* pair, int size_bytes, long count, long window) {
  static MPI_Request requests[most_in_window];
  if (window == 1) {
    run_streams(pair, size_bytes, count, window);
    return;
  }
  for (long i = 0; i < window; ++i) requests[i] = MPI_REQUEST_NULL;
  for (long i = 0; i < count; ++i) {
    MPI_Request* request = &requests[i % window];
    end_one(pair, request, size_bytes);
    if (pair->even) {
      before_send(pair, size_bytes);
      MPI_Isend(pair->outgoing, size_bytes, MPI_CHAR, pair->partner, data_tag, pair->team, request);
    } else {
      MPI_Irecv(pair->incoming, size_bytes, MPI_CHAR, pair->partner, data_tag, pair->team, request);
    }
  }
  long received = 0;
  for (long i = 0; i < window; ++i) received += requests[i] != MPI_REQUEST_NULL && !pair->even;
  MPI_Waitall((int)window, requests, MPI_STATUSES_IGNORE);
  for (; received > 0; --received) after_receive(pair, size_bytes);
  close_stream(pair);
}

// Both sides send before either receives.
static void run_ping_pings(const struct Pair* pair, int size_bytes, long count, long window) {
  (void)window;
  for (long i = 0; i < count; ++i) {
    MPI_Request sent;
    before_send(pair, size_bytes);
    MPI_Isend(pair->outgoing, size_bytes, MPI_CHAR, pair->partner, data_tag, pair->team, &sent);
    receive_data(pair, size_bytes);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }
}

static void run_exchanges(const struct Pair* pair, int size_bytes, long count, long window) {
  (void)window;
  for (long i = 0; i < count; ++i) {
    before_send(pair, size_bytes);
    MPI_Sendrecv(pair->outgoing, size_bytes, MPI_CHAR, pair->partner, data_tag, pair->incoming, size_bytes,
                 MPI_CHAR, pair->partner, data_tag, pair->team, MPI_STATUS_IGNORE);
    after_receive(pair, size_bytes);
  }
}

static const struct Test tests[] = {
    {"pingpong", "MPI_Send + MPI_Recv against MPI_Recv + MPI_Send; time is half a round trip",
     run_round_trips, 2, 1, false},
    {"pingping", "MPI_Isend + MPI_Recv + MPI_Wait on both sides; time is that of a round", run_ping_pings, 1,
     1, false},
    {"roundtrip", "MPI_Send + MPI_Recv against MPI_Recv + MPI_Send; time is the full round trip",
     run_round_trips, 1, 2, false},
    {"oneway", "n MPI_Send against n MPI_Recv, one closing reply; time is total / n (a gap, not a latency)",
     run_streams, 1, 1, false},
    {"unidirectional", "MPI_Isend against MPI_Irecv, `window` at once; one closing reply; time is total / n",
     run_windows, 1, 1, true},
    {"bidirectional", "MPI_Sendrecv on both sides; bandwidth is the aggregate of both directions",
     run_exchanges, 1, 2, false},
};
enum { test_count = sizeof tests / sizeof tests[0] };

// Every rank finds the same error in the arguments; only rank 0 prints it.
static void refuse(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void refuse(const char* format, ...) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "apenet_bench: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    fflush(stderr);
  }
  MPI_Finalize();
  exit(exit_bad_input);
}

// Parses a positive number up to `limit` with an optional binary suffix. Sets *end to the first character
// after it; returns 0 if there is no valid number.
static long parse_number(const char* text, char** end, long limit) {
  errno = 0;
  const long value = strtol(text, end, 10);
  long unit = 1;
  if (**end == 'K') unit = 1L << 10;
  if (**end == 'M') unit = 1L << 20;
  if (**end == 'G') unit = 1L << 30;
  if (unit != 1) ++*end;
  if (*end == text || errno != 0 || value < 1 || value > limit / unit) return 0;
  return value * unit;
}

static long parse_count(const char* option, const char* text) {
  char* end = NULL;
  const long value = parse_number(text, &end, 1000000000);
  if (value == 0 || *end != '\0') refuse("%s = '%s': expected a whole number of at least 1", option, text);
  return value;
}

static void parse_sizes(struct Arguments* arguments, const char* text) {
  char* end = NULL;
  arguments->min_bytes = parse_number(text, &end, largest_size_bytes);
  arguments->max_bytes = arguments->min_bytes;
  if (arguments->min_bytes != 0 && *end == ':')
    arguments->max_bytes = parse_number(end + 1, &end, largest_size_bytes);
  if (arguments->min_bytes == 0 || arguments->max_bytes == 0 || *end != '\0')
    refuse("--sizes = '%s': expected MIN:MAX in bytes, 1 to 1G, such as 16:1M", text);
  if (arguments->max_bytes < arguments->min_bytes)
    refuse("--sizes = '%s': expected a minimum that is not above the maximum", text);
}

// The first kind of "gpu,host" is that of the even ranks.
static void parse_memory(struct Arguments* arguments, const char* text) {
  const char* comma = strchr(text, ',');
  for (int side = 0; side < 2; ++side) {
    const char* begin = side == 1 && comma != NULL ? comma + 1 : text;
    const size_t length = side == 0 && comma != NULL ? (size_t)(comma - text) : strlen(begin);
    int kind = 0;
    while (kind < memory_kinds &&
           (strlen(memory_names[kind]) != length || strncmp(memory_names[kind], begin, length) != 0))
      ++kind;
    if (kind == memory_kinds)
      refuse("--memory = '%s': expected host, gpu or gpu-staged, or two of them as host,gpu", text);
    if (kind != memory_host && ape_gpu_count() == 0)
      refuse("--memory = '%s': expected host: there is no GPU that apenet_gpu.h knows", text);
    arguments->memory[side] = (enum Memory)kind;
  }
}

static void parse_nodes(struct Arguments* arguments, const char* text, int world_size) {
  arguments->node_count = 0;
  for (const char* position = text;; ++position) {
    char* end = NULL;
    errno = 0;
    const long node = strtol(position, &end, 10);
    if (end == position || errno != 0 || (*end != ',' && *end != '\0'))
      refuse("--nodes = '%s': expected ranks such as 0,1", text);
    if (node < 0 || node >= world_size)
      refuse("--nodes = '%s': rank %ld does not exist, expected 0 to %d", text, node, world_size - 1);
    for (int i = 0; i < arguments->node_count; ++i) {
      if (arguments->nodes[i] == node) refuse("--nodes = '%s': rank %ld is listed twice", text, node);
    }
    if (arguments->node_count == most_nodes) refuse("--nodes: expected %d ranks at most", (int)most_nodes);
    arguments->nodes[arguments->node_count++] = (int)node;
    position = end;
    if (*end == '\0') break;
  }
  if (arguments->node_count % 2 != 0)
    refuse("--nodes = '%s': expected an even number of ranks, they work in pairs", text);
}

static const struct Test* find_test(const char* name) {
  for (int i = 0; i < test_count; ++i) {
    if (strcmp(tests[i].name, name) == 0) return &tests[i];
  }
  refuse("--test = '%s': expected pingpong, pingping, roundtrip, oneway, unidirectional or bidirectional",
         name);
}

static struct Arguments* parse_arguments(int argc, char** argv, int world_size) {
  static struct Arguments arguments = {
      .min_bytes = 1, .max_bytes = 1L << 20, .iterations = 1000, .window = 64};
  bool has_window = false;
  arguments.test = &tests[0];
  arguments.node_count = world_size < most_nodes ? world_size / 2 * 2 : most_nodes;
  for (int i = 0; i < arguments.node_count; ++i) arguments.nodes[i] = i;
  for (int i = 1; i < argc; i += 2) {
    const char* option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (value == NULL) refuse("%s: expected a value after it", option);
    if (strcmp(option, "--test") == 0) {
      arguments.test = find_test(value);
    } else if (strcmp(option, "--sizes") == 0) {
      parse_sizes(&arguments, value);
    } else if (strcmp(option, "--iterations") == 0) {
      arguments.iterations = parse_count(option, value);
    } else if (strcmp(option, "--window") == 0) {
      arguments.window = parse_count(option, value);
      has_window = true;
      if (arguments.window > most_in_window)
        refuse("--window = '%s': expected at most %d", value, most_in_window);
    } else if (strcmp(option, "--memory") == 0) {
      parse_memory(&arguments, value);
    } else if (strcmp(option, "--nodes") == 0) {
      parse_nodes(&arguments, value, world_size);
    } else if (strcmp(option, "--output") == 0) {
      arguments.output = value;
    } else {
      refuse(
          "unknown option '%s': expected --test, --sizes, --iterations, --window, --memory, --nodes or "
          "--output",
          option);
    }
  }
  if (has_window && arguments.window > arguments.iterations)
    refuse("--window = %ld: expected at most the %ld messages of a size; more with --iterations",
           arguments.window, arguments.iterations);
  if (arguments.node_count < 2) refuse("expected at least 2 ranks, got %d", world_size);
  return &arguments;
}

// Large messages take longer, and need fewer repetitions for the same accuracy.
static long iterations_for(long iterations, long size_bytes) {
  const long full_up_to_bytes = 8192;
  const long fewest = iterations < 10 ? iterations : 10;
  if (size_bytes <= full_up_to_bytes) return iterations;
  const long fewer = (long)((double)iterations * (double)full_up_to_bytes / (double)size_bytes);
  return fewer > fewest ? fewer : fewest;
}

// The duration of one repetition of the slowest pair, in seconds; valid on rank 0 of the team.
static double measure(const struct Arguments* arguments, const struct Pair* pair, int size_bytes) {
  const struct Test* test = arguments->test;
  const long count = iterations_for(arguments->iterations, size_bytes);
  const long window = test->has_window && arguments->window < count ? arguments->window : count;
  const long warm_up = count / 10 > 2 ? count / 10 : 2;
  test->run(pair, size_bytes, warm_up, warm_up);
  MPI_Barrier(pair->team);
  const double begin_s = MPI_Wtime();
  test->run(pair, size_bytes, count, window);
  // The clock of a streaming test stops at the closing reply, which only the sender receives.
  const double mine_s = pair->even ? MPI_Wtime() - begin_s : 0;
  double slowest_s = 0;
  MPI_Reduce(&mine_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, pair->team);
  return slowest_s / (double)count;
}

// Aligned to pages, as the buffers of the common benchmarks are: a card that translates addresses then looks
// up as few pages as a message of this size can have.
static char* allocate(long size_bytes, char fill, bool in_gpu) {
  const size_t pages = ((size_t)size_bytes + page_bytes - 1) / page_bytes;
  char* memory = in_gpu ? ape_gpu_malloc((size_t)size_bytes) : aligned_alloc(page_bytes, pages * page_bytes);
  if (memory == NULL) {
    fprintf(stderr, "apenet_bench: no memory for a message of %ld bytes\n", size_bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  // Touches all pages before the clock starts.
  if (in_gpu) ape_gpu_memset(memory, fill, (size_t)size_bytes);
  if (!in_gpu) memset(memory, fill, (size_t)size_bytes);
  return memory;
}

static void allocate_buffers(struct Pair* pair, long size_bytes, enum Memory memory) {
  pair->outgoing = allocate(size_bytes, 'a', memory == memory_gpu);
  pair->incoming = allocate(size_bytes, 'b', memory == memory_gpu);
  if (memory != memory_gpu_staged) return;
  pair->gpu_outgoing = allocate(size_bytes, 'a', true);
  pair->gpu_incoming = allocate(size_bytes, 'b', true);
}

static void free_buffers(const struct Pair* pair, enum Memory memory) {
  char* const buffers[] = {pair->outgoing, pair->incoming};
  for (int i = 0; i < 2; ++i) {
    if (memory == memory_gpu) ape_gpu_free(buffers[i]);
    if (memory != memory_gpu) free(buffers[i]);
  }
  if (memory != memory_gpu_staged) return;
  ape_gpu_free(pair->gpu_outgoing);
  ape_gpu_free(pair->gpu_incoming);
}

static void print_header(const struct Arguments* arguments) {
  printf("# apenet_bench %s: %s\n# pairs:", arguments->test->name, arguments->test->definition);
  for (int i = 0; i < arguments->node_count; i += 2)
    printf(" %d-%d", arguments->nodes[i], arguments->nodes[i + 1]);
  printf("\n# %-10s %14s %20s\n", "Size [B]", "Time [us]", "Bandwidth [MiB/s]");
}

static void run_test(const struct Arguments* arguments, const struct Pair* pair, FILE* output) {
  const struct Test* test = arguments->test;
  const bool reports = output != NULL;
  if (reports) print_header(arguments);
  for (long size_bytes = arguments->min_bytes; size_bytes <= arguments->max_bytes; size_bytes *= 2) {
    const double repetition_s = measure(arguments, pair, (int)size_bytes);
    if (!reports) continue;
    const double time_us = repetition_s / test->divisor * 1e6;
    const double bandwidth_mib_s =
        test->bytes_multiplier * (double)size_bytes / bytes_per_mib / (time_us * 1e-6);
    printf("%-12ld %14.4f %20.3f\n", size_bytes, time_us, bandwidth_mib_s);
    fflush(stdout);
    if (output == stdout) continue;
    fprintf(output, "{\"size_bytes\": %ld, \"time_us\": %.6f, \"bandwidth_mib_s\": %.6f}\n", size_bytes,
            time_us, bandwidth_mib_s);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int world_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const struct Arguments* arguments = parse_arguments(argc, argv, world_size);

  int place = -1;  // index in the list of participants
  for (int i = 0; i < arguments->node_count; ++i) {
    if (arguments->nodes[i] == rank) place = i;
  }
  FILE* output = NULL;
  int failed_open = 0;
  if (place == 0) {
    output = arguments->output == NULL ? stdout : fopen(arguments->output, "w");
    failed_open = output == NULL ? errno : 0;
  }
  MPI_Bcast(&failed_open, 1, MPI_INT, arguments->nodes[0], MPI_COMM_WORLD);
  if (failed_open != 0)
    refuse("--output = '%s': %s, expected a file that can be written", arguments->output,
           strerror(failed_open));

  struct Pair pair = {.team = MPI_COMM_NULL};
  MPI_Comm_split(MPI_COMM_WORLD, place < 0 ? MPI_UNDEFINED : 0, place, &pair.team);
  if (place >= 0) {
    pair.even = place % 2 == 0;
    pair.partner = pair.even ? place + 1 : place - 1;
    const enum Memory memory = arguments->memory[place % 2];
    allocate_buffers(&pair, arguments->max_bytes, memory);
    run_test(arguments, &pair, output);
    free_buffers(&pair, memory);
    MPI_Comm_free(&pair.team);
  }
  if (output != NULL && output != stdout) fclose(output);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
