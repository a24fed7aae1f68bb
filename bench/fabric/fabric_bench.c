// Measures a real fabric between two processes, in real time. `apenet calibrate` runs it.
//
//   fabric_bench LIBRARY list
//   fabric_bench LIBRARY server PROVIDER DOMAIN CPU PORT
//   fabric_bench LIBRARY client PROVIDER DOMAIN CPU HOST PORT SAMPLES WINDOW SIZE...
//
// DOMAIN and CPU may be "-" for any. The server prints the port on which it listens (PORT 0 requests a free
// one). The client prints one JSON object per line with the test, the size and the time of each sample in
// microseconds:
//   pingpong        half a round trip, the mean of several
//   unidirectional  time per message of a windowed stream that ends with a short answer
//   send, receive   CPU time to post a message, and to take one that has arrived; at the smallest size
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint.h"

enum {
  MAX_SIZES = 64,
  MAGIC = 0x4150456e,
  TAG_MESSAGE = 1,
  TAG_ANSWER = 2,
  ANSWER_BYTES = 1,
  WARM_UP_SAMPLES = 5,
  SMALL_BYTES = 16384,
  ROUND_TRIPS = 10,
  LARGE_ROUND_TRIPS = 2,
  STREAM_BYTES = 1 << 24,
  LEAST_STREAM = 8,
  OVERHEAD_PAUSE_US = 100,
};

// The parameters of the tests, sent by the client.
struct plan {
  uint32_t magic, samples, window, sizes;
  uint64_t size_bytes[MAX_SIZES];
};

static uint64_t largest(const struct plan* plan) {
  uint64_t found = ANSWER_BYTES;
  for (uint32_t i = 0; i < plan->sizes; ++i) {
    if (plan->size_bytes[i] > found) found = plan->size_bytes[i];
  }
  return found;
}

static int round_trips(uint64_t bytes) {
  return bytes <= SMALL_BYTES ? ROUND_TRIPS : LARGE_ROUND_TRIPS;
}

static uint64_t stream_messages(const struct plan* plan, uint64_t bytes) {
  const uint64_t most = 4 * (uint64_t)plan->window;
  const uint64_t fitting = STREAM_BYTES / (bytes > 0 ? bytes : 1);
  return fitting < LEAST_STREAM ? LEAST_STREAM : fitting < most ? fitting : most;
}

// -- the control connection: exchanges names and plan, and synchronises the two sides --

static void write_all(int control, const void* data, size_t bytes) {
  for (const char* at = data; bytes > 0;) {
    const ssize_t written = send(control, at, bytes, MSG_NOSIGNAL);
    if (written <= 0) fail("the other side has closed the connection");
    at += written;
    bytes -= (size_t)written;
  }
}

static void read_all(int control, void* data, size_t bytes) {
  for (char* at = data; bytes > 0;) {
    const ssize_t got = recv(control, at, bytes, 0);
    if (got <= 0) fail("the other side has closed the connection");
    at += got;
    bytes -= (size_t)got;
  }
}

static void meet(int control) {
  char byte = 0;
  write_all(control, &byte, 1);
  read_all(control, &byte, 1);
}

static int accept_client(uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = INADDR_ANY};
  socklen_t bytes = sizeof address;
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr*)&address, &bytes) != 0) {
    fail("cannot listen on port %u", port);
  }
  printf("%u\n", ntohs(address.sin_port));
  fflush(stdout);
  const int control = accept(listener, NULL, NULL);
  if (control < 0) fail("no client");
  close(listener);
  return control;
}

static int connect_to(const char* host, const char* port) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  if (getaddrinfo(host, port, &hints, &found) != 0) fail("%s: no such host", host);
  const int control = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(control, found->ai_addr, found->ai_addrlen) != 0) {
    fail("nobody listens on %s, port %s: start the server there first", host, port);
  }
  freeaddrinfo(found);
  return control;
}

// The address of this host towards the other side. A provider with IP addresses is bound to it.
static void own_address(int control, char text[INET_ADDRSTRLEN]) {
  struct sockaddr_in address;
  socklen_t bytes = sizeof address;
  if (getsockname(control, (struct sockaddr*)&address, &bytes) != 0 ||
      inet_ntop(AF_INET, &address.sin_addr, text, INET_ADDRSTRLEN) == NULL) {
    fail("no address of this host");
  }
}

static int has_ip_addresses(const struct fi_info* info) {
  return info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN ||
         info->addr_format == FI_SOCKADDR_IN6;
}

static void join(struct endpoint* endpoint, const struct library* library, int control, const char* provider,
                 const char* domain, uint64_t max_bytes) {
  const int on = 1;
  setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  char address[INET_ADDRSTRLEN];
  own_address(control, address);
  struct fi_info* info = find_info(library, provider, domain, address);
  // Other providers would take an IP address as an arbitrary name, which would be the same for two processes
  // of a host.
  if (info == NULL || !has_ip_addresses(info)) {
    if (info != NULL) library->freeinfo(info);
    info = find_info(library, provider, domain, NULL);
  }
  if (info == NULL) fail("provider %s: none with reliable datagrams and tags", provider);
  open_endpoint(endpoint, library, info, max_bytes);
  unsigned char name[MAX_NAME_BYTES] = {0};
  endpoint_name(endpoint, name);
  write_all(control, name, sizeof name);
  read_all(control, name, sizeof name);
  set_peer(endpoint, name);
  meet(control);
}

// -- the tests, client and server side --

static void print_samples(const char* test, uint64_t bytes, const double* samples, uint32_t count) {
  printf("{\"test\": \"%s\", \"size_bytes\": %llu, \"samples_us\": [", test, (unsigned long long)bytes);
  for (uint32_t i = 0; i < count; ++i) printf("%s%.6g", i > 0 ? ", " : "", samples[i]);
  printf("]}\n");
  fflush(stdout);
}

static void ping(struct endpoint* endpoint, uint64_t bytes) {
  post_receive(endpoint, bytes, TAG_MESSAGE);
  post_send(endpoint, bytes, TAG_MESSAGE);
  await_receives(endpoint, endpoint->receives_posted);
  await_sends(endpoint, endpoint->sends_posted);
}

static void pingpong_client(struct endpoint* endpoint, const struct plan* plan, uint64_t bytes,
                            double* samples) {
  const int trips = round_trips(bytes);
  for (uint32_t sample = 0; sample < WARM_UP_SAMPLES + plan->samples; ++sample) {
    const double begin = now_us();
    for (int i = 0; i < trips; ++i) ping(endpoint, bytes);
    if (sample >= WARM_UP_SAMPLES) samples[sample - WARM_UP_SAMPLES] = (now_us() - begin) / (2 * trips);
  }
}

static void pingpong_server(struct endpoint* endpoint, const struct plan* plan, uint64_t bytes) {
  const uint64_t rounds = (uint64_t)(WARM_UP_SAMPLES + plan->samples) * (uint64_t)round_trips(bytes);
  post_receive(endpoint, bytes, TAG_MESSAGE);
  for (uint64_t i = 0; i < rounds; ++i) {
    await_receives(endpoint, endpoint->receives_posted);
    if (i + 1 < rounds) post_receive(endpoint, bytes, TAG_MESSAGE);
    post_send(endpoint, bytes, TAG_MESSAGE);
    await_sends(endpoint, endpoint->sends_posted);
  }
}

static void stream_client(struct endpoint* endpoint, const struct plan* plan, uint64_t bytes,
                          double* samples) {
  const uint64_t messages = stream_messages(plan, bytes);
  for (uint32_t sample = 0; sample < WARM_UP_SAMPLES + plan->samples; ++sample) {
    post_receive(endpoint, ANSWER_BYTES, TAG_ANSWER);
    const uint64_t first = endpoint->sends_posted;
    const double begin = now_us();
    for (uint64_t i = 0; i < messages; ++i) {
      if (i >= plan->window) await_sends(endpoint, first + i + 1 - plan->window);
      post_send(endpoint, bytes, TAG_MESSAGE);
    }
    await_sends(endpoint, endpoint->sends_posted);
    await_receives(endpoint, endpoint->receives_posted);
    if (sample >= WARM_UP_SAMPLES) {
      samples[sample - WARM_UP_SAMPLES] = (now_us() - begin) / (double)messages;
    }
  }
}

static void stream_server(struct endpoint* endpoint, const struct plan* plan, uint64_t bytes, int control) {
  const uint64_t messages = stream_messages(plan, bytes);
  const uint64_t ahead = messages < plan->window ? messages : plan->window;
  const uint64_t total = messages * (WARM_UP_SAMPLES + plan->samples);
  uint64_t posted = 0;
  const uint64_t first = endpoint->receives_done;
  for (; posted < ahead; ++posted) post_receive(endpoint, bytes, TAG_MESSAGE);
  meet(control);
  for (uint64_t taken = 1; taken <= total; ++taken) {
    await_receives(endpoint, first + taken);
    if (posted < total) {
      post_receive(endpoint, bytes, TAG_MESSAGE);
      ++posted;
    }
    if (taken % messages == 0) {
      post_send(endpoint, ANSWER_BYTES, TAG_ANSWER);
      await_sends(endpoint, endpoint->sends_posted);
    }
  }
}

static void pause_us(double duration) {
  const double end = now_us() + duration;
  while (now_us() < end) continue;
}

// The client posts while nothing else is in progress, and takes an answer that has already arrived.
static void overhead_client(struct endpoint* endpoint, const struct plan* plan, uint64_t bytes, double* sends,
                            double* receives) {
  for (uint32_t sample = 0; sample < WARM_UP_SAMPLES + plan->samples; ++sample) {
    post_receive(endpoint, bytes, TAG_MESSAGE);
    const double begin = now_us();
    post_send(endpoint, bytes, TAG_MESSAGE);
    const double posted = now_us();
    await_sends(endpoint, endpoint->sends_posted);
    pause_us(OVERHEAD_PAUSE_US);
    const double polled = now_us();
    const int had_come = endpoint->receives_done == endpoint->receives_posted;
    await_receives(endpoint, endpoint->receives_posted);
    if (sample < WARM_UP_SAMPLES) continue;
    sends[sample - WARM_UP_SAMPLES] = posted - begin;
    receives[sample - WARM_UP_SAMPLES] = had_come ? -1 : now_us() - polled;
  }
}

static uint32_t without_negative(double* samples, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (samples[i] >= 0) samples[kept++] = samples[i];
  }
  return kept;
}

static void run_client(struct endpoint* endpoint, const struct plan* plan, int control) {
  double* samples = calloc(2 * plan->samples, sizeof *samples);
  if (samples == NULL) fail("no memory");
  for (uint32_t i = 0; i < plan->sizes; ++i) {
    pingpong_client(endpoint, plan, plan->size_bytes[i], samples);
    print_samples("pingpong", plan->size_bytes[i], samples, plan->samples);
    meet(control);
    stream_client(endpoint, plan, plan->size_bytes[i], samples);
    print_samples("unidirectional", plan->size_bytes[i], samples, plan->samples);
    meet(control);
  }
  double* receives = samples + plan->samples;
  overhead_client(endpoint, plan, plan->size_bytes[0], samples, receives);
  print_samples("send", plan->size_bytes[0], samples, plan->samples);
  print_samples("receive", plan->size_bytes[0], receives, without_negative(receives, plan->samples));
  free(samples);
}

static void run_server(struct endpoint* endpoint, const struct plan* plan, int control) {
  for (uint32_t i = 0; i < plan->sizes; ++i) {
    pingpong_server(endpoint, plan, plan->size_bytes[i]);
    stream_server(endpoint, plan, plan->size_bytes[i], control);
    meet(control);
  }
  const uint64_t rounds = WARM_UP_SAMPLES + plan->samples;
  for (uint64_t i = 0; i < rounds; ++i) {
    post_receive(endpoint, plan->size_bytes[0], TAG_MESSAGE);
    await_receives(endpoint, endpoint->receives_posted);
    post_send(endpoint, plan->size_bytes[0], TAG_MESSAGE);
    await_sends(endpoint, endpoint->sends_posted);
  }
}

// -- the command line --

static void list_providers(const struct library* library) {
  struct fi_info* found = find_info(library, NULL, NULL, NULL);
  for (const struct fi_info* info = found; info != NULL; info = info->next) {
    printf("%s %s\n", info->fabric_attr->prov_name, info->domain_attr->name);
  }
  if (found != NULL) library->freeinfo(found);
}

static void pin(const char* cpu) {
  if (strcmp(cpu, "-") == 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((unsigned)atoi(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("CPU %s: this process cannot run on it", cpu);
}

static const char* or_any(const char* text) {
  return strcmp(text, "-") == 0 ? NULL : text;
}

static uint32_t count(const char* text, uint32_t most) {
  const long value = strtol(text, NULL, 10);
  if (value < 1 || value > (long)most) fail("%s: expected 1 to %u", text, most);
  return (uint32_t)value;
}

static struct plan plan_of(int count_of_arguments, char** arguments) {
  struct plan plan = {
      .magic = MAGIC, .samples = count(arguments[0], 1U << 20), .window = count(arguments[1], MAX_WINDOW)};
  for (int i = 2; i < count_of_arguments; ++i) plan.size_bytes[plan.sizes++] = count(arguments[i], 1U << 30);
  return plan;
}

int main(int argc, char** argv) {
  struct library library;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // after the end of the caller nobody reads the results
  if (argc < 3) fail("LIBRARY list, server or client: see fabric_bench.c");
  load_library(&library, argv[1]);
  const int is_server = strcmp(argv[2], "server") == 0 && argc == 7;
  const int is_client = strcmp(argv[2], "client") == 0 && argc > 10 && argc <= 10 + MAX_SIZES;
  if (strcmp(argv[2], "list") == 0) {
    list_providers(&library);
    return 0;
  }
  if (!is_server && !is_client) fail("LIBRARY list, server or client: see fabric_bench.c");
  pin(argv[5]);
  struct plan plan;
  const int control = is_server ? accept_client((uint16_t)atoi(argv[6])) : connect_to(argv[6], argv[7]);
  if (is_client) {
    plan = plan_of(argc - 8, argv + 8);
    write_all(control, &plan, sizeof plan);
  } else {
    read_all(control, &plan, sizeof plan);
    if (plan.magic != MAGIC || plan.sizes > MAX_SIZES)
      fail("the other side is another program, or another version");
  }
  static struct endpoint endpoint;
  join(&endpoint, &library, control, argv[3], or_any(argv[4]), largest(&plan));
  if (is_server) {
    run_server(&endpoint, &plan, control);
  } else {
    run_client(&endpoint, &plan, control);
  }
  meet(control);
  close_endpoint(&endpoint);
  close(control);
  return 0;
}
