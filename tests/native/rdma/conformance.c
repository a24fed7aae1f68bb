/* Every call of ape_rdma.h, and its misuse, on any number of processes: each puts, gets and sends around a
 * ring. */
#include <ape_rdma.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

enum { room = 3 << 20, half = room / 2 };

static int failures;
static int rank, size;
static ape_rdma_port* port;
static ape_rdma_address next;
static char *out, *in;
static ape_rdma_buffer mine, theirs;

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "conformance.c:%d: rank %d expected %s\n", line, rank, what);
}
#define EXPECT(condition) expect((condition) != 0, #condition, __LINE__)
#define STATUS(call, wanted) expect((call) == (wanted), #call " to be " #wanted, __LINE__)
#define OK(call) STATUS(call, APE_RDMA_OK)

static ape_rdma_event waited(ape_rdma_kind kind, uint64_t cookie, int line) {
  ape_rdma_event event;
  memset(&event, 0, sizeof event);
  expect(ape_rdma_wait(port, &event) == APE_RDMA_OK, "an event", line);
  expect(event.kind == kind && event.cookie == cookie, "this kind and cookie", line);
  if (event.kind != kind || event.cookie != cookie)
    fprintf(stderr, "  got kind %d, cookie %llu\n", event.kind, (unsigned long long)event.cookie);
  return event;
}
#define WAIT(kind, cookie) waited(kind, cookie, __LINE__)

/* All take part: an empty message around the ring, twice. */
static void meet(void) {
  for (int round = 0; round < 2; ++round) {
    if (rank > 0) WAIT(APE_RDMA_RX_DONE, 999);
    OK(ape_rdma_post_send(port, next, APE_RDMA_ANY_QUEUE, &(ape_rdma_segment){out, 0}, 1, 0, 999));
    if (rank == 0) WAIT(APE_RDMA_RX_DONE, 999);
  }
}

static void exchange_names(void) {
  char byte[8] = {0};
  memcpy(out, &mine, sizeof mine);
  OK(ape_rdma_post_send(port, next, 0, &(ape_rdma_segment){out, sizeof mine}, 1, APE_RDMA_SIGNAL, 7));
  ape_rdma_event event;
  int received = 0, sent = 0;
  while (!received || !sent) {
    OK(ape_rdma_wait(port, &event));
    if (event.kind == APE_RDMA_TX_DONE) sent = 1;
    if (event.kind != APE_RDMA_RX_DONE) continue;
    received = 1;
    EXPECT(event.cookie == 7 && event.bytes == sizeof mine && event.buffer == 0);
    STATUS(ape_rdma_read_message(port, byte, 4), APE_RDMA_TRUNCATED);
    OK(ape_rdma_read_message(port, &theirs, sizeof theirs));
  }
  /* The name of the buffer before us goes on around the ring until each has that of the next. */
  for (int step = 0; step < size - 2; ++step) {
    memcpy(out, &theirs, sizeof theirs);
    OK(ape_rdma_post_send(port, next, 0, &(ape_rdma_segment){out, sizeof theirs}, 1, 0, 8));
    WAIT(APE_RDMA_RX_DONE, 8);
    OK(ape_rdma_read_message(port, &theirs, sizeof theirs));
  }
}

static void put_and_get(void) {
  memset(in, 0, room);
  meet();
  for (int i = 0; i < half; ++i) out[i] = (char)(i * 7 + rank);
  /* A list of three pieces, with a report at either end. */
  const ape_rdma_segment list[3] = {{out, 1000}, {out + 5000, 0}, {out + 1000, half - 1000}};
  OK(ape_rdma_post_put(port, next, 1, list, 3, theirs, 100,
                       APE_RDMA_SIGNAL | APE_RDMA_NOTIFY | APE_RDMA_DELIVERED, 11));
  int sent = 0, arrived = 0, delivered = 0;
  while (!sent || !arrived || !delivered) {
    ape_rdma_event event;
    OK(ape_rdma_wait(port, &event));
    EXPECT(event.cookie == 11 && event.status == APE_RDMA_OK);
    sent += event.kind == APE_RDMA_TX_DONE;
    delivered += event.kind == APE_RDMA_PUT_DELIVERED;
    arrived += event.kind == APE_RDMA_RX_DONE;
  }
  EXPECT(sent == 1 && arrived == 1 && delivered == 1);
  const int before = (rank + size - 1) % size;
  int wrong = in[99] != 0 || in[100 + half] != 0;
  for (int i = 0; i < half; ++i) wrong += in[100 + i] != (char)(i * 7 + before);
  EXPECT(wrong == 0);
  meet();
  OK(ape_rdma_post_get(port, next, APE_RDMA_ANY_QUEUE,
                       (const ape_rdma_segment[]){{out + half, 50}, {out + half + 100, 50}}, 2, theirs, 100,
                       12));
  const ape_rdma_event got = WAIT(APE_RDMA_GET_DONE, 12);
  EXPECT(got.status == APE_RDMA_OK && memcmp(out + half, out, 50) == 0 &&
         memcmp(out + half + 100, out + 50, 50) == 0);
  meet();
}

/* What the target does not permit moves nothing, and is reported here. */
static void refusals(void) {
  memset(in, 1, room);
  meet();
  const ape_rdma_segment list = {out, 64};
  memset(out, 2, 64);
  OK(ape_rdma_post_put(port, next, 0, &list, 1, theirs, room - 63, 0, 21));
  EXPECT(WAIT(APE_RDMA_REFUSED, 21).status == APE_RDMA_OUT_OF_BOUNDS);
  OK(ape_rdma_post_put(port, next, 0, &list, 1, theirs, (size_t)-64, APE_RDMA_DELIVERED, 22));
  EXPECT(WAIT(APE_RDMA_PUT_DELIVERED, 22).status == APE_RDMA_OUT_OF_BOUNDS);
  OK(ape_rdma_post_put(port, next, 0, &list, 1, theirs + ((uint64_t)1 << 40), 0, APE_RDMA_NOTIFY, 23));
  EXPECT(WAIT(APE_RDMA_REFUSED, 23).status != APE_RDMA_OK);
  OK(ape_rdma_post_get(port, next, 0, &list, 1, theirs, room, 24));
  EXPECT(WAIT(APE_RDMA_GET_DONE, 24).status == APE_RDMA_OUT_OF_BOUNDS);
  meet();
  int wrong = 0;
  for (int i = 0; i < room; ++i) wrong += in[i] != 1;
  EXPECT(wrong == 0);
}

static void misuse(void) {
  ape_rdma_port* second = NULL;
  int channels = 0;
  ape_rdma_buffer buffer;
  ape_rdma_event event;
  char outside[64];
  const ape_rdma_segment good = {out, 8}, none = {NULL, 8}, stray = {outside, 8}, large = {out, 100000};
  OK(ape_rdma_channels(port, &channels));
  EXPECT(channels >= 1);
  STATUS(ape_rdma_open(APE_RDMA_ANY_PORT, &second), APE_RDMA_PORT_TAKEN);
  STATUS(ape_rdma_post_send(NULL, next, 0, &good, 1, 0, 0), APE_RDMA_NOT_OPEN);
  STATUS(ape_rdma_post_send(port, (ape_rdma_address){0, 99}, 0, &good, 1, 0, 0), APE_RDMA_BAD_TARGET);
  STATUS(ape_rdma_post_send(port, (ape_rdma_address){-1, 0}, 0, &good, 1, 0, 0), APE_RDMA_BAD_TARGET);
  STATUS(ape_rdma_post_send(port, next, 99, &good, 1, 0, 0), APE_RDMA_BAD_QUEUE);
  STATUS(ape_rdma_post_send(port, next, APE_RDMA_CHANNEL(channels), &good, 1, 0, 0), APE_RDMA_BAD_CHANNEL);
  STATUS(ape_rdma_post_put(port, next, INT_MIN, &good, 1, theirs, 0, 0, 0), APE_RDMA_BAD_CHANNEL);
  STATUS(ape_rdma_post_get(port, next, APE_RDMA_CHANNEL(99), &good, 1, theirs, 0, 0), APE_RDMA_BAD_CHANNEL);
  STATUS(ape_rdma_post_send(port, next, 0, &good, 0, 0, 0), APE_RDMA_BAD_SIZE);
  STATUS(ape_rdma_post_send(port, next, 0, &good, -1, 0, 0), APE_RDMA_BAD_SIZE);
  STATUS(ape_rdma_post_send(port, next, 0, NULL, 1, 0, 0), APE_RDMA_BAD_ADDRESS);
  STATUS(ape_rdma_post_send(port, next, 0, &none, 1, 0, 0), APE_RDMA_BAD_ADDRESS);
  STATUS(ape_rdma_post_send(port, next, 0, &stray, 1, 0, 0), APE_RDMA_NOT_REGISTERED);
  STATUS(ape_rdma_post_send(port, next, 0, &large, 1, 0, 0), APE_RDMA_BAD_SIZE);
  STATUS(ape_rdma_post_send(port, next, 0, &good, 1, APE_RDMA_NOTIFY, 0), APE_RDMA_BAD_FLAGS);
  STATUS(ape_rdma_post_put(port, next, 0, &good, 1, theirs, 0, 64, 0), APE_RDMA_BAD_FLAGS);
  STATUS(ape_rdma_post_get(port, next, 0, &stray, 1, theirs, 0, 0), APE_RDMA_NOT_REGISTERED);
  STATUS(ape_rdma_register(port, NULL, 8), APE_RDMA_BAD_ADDRESS);
  STATUS(ape_rdma_unregister(port, outside), APE_RDMA_NOT_REGISTERED);
  STATUS(ape_rdma_publish(port, outside, 8, &buffer), APE_RDMA_NOT_REGISTERED);
  STATUS(ape_rdma_unpublish(port, 12345), APE_RDMA_BAD_BUFFER);
  STATUS(ape_rdma_address_of_rank(port, size, &next), APE_RDMA_BAD_TARGET);
  STATUS(ape_rdma_poll(port, &event), APE_RDMA_NOT_YET);
  STATUS(ape_rdma_wait_for(port, 3.0, &event), APE_RDMA_NOT_YET);
  STATUS(ape_rdma_wait_for(port, -1.0, &event), APE_RDMA_BAD_SIZE);
  for (int status = 0; status <= APE_RDMA_NO_MEMORY; ++status)
    EXPECT(strlen(ape_rdma_strerror((ape_rdma_status)status)) > 0);
}

/* Waits for files are waits for events, in virtual time. */
static void descriptors(void) {
  int file = -1;
  double begin_us = 0, end_us = 0;
  OK(ape_rdma_descriptor(port, &file));
  fd_set files;
  FD_ZERO(&files);
  FD_SET(file, &files);
  OK(ape_rdma_time_us(port, &begin_us));
  EXPECT(select(file + 1, &files, NULL, NULL, &(struct timeval){.tv_usec = 300}) == 0);
  OK(ape_rdma_time_us(port, &end_us));
  EXPECT(end_us - begin_us >= 300 && end_us - begin_us < 400);
  meet();
  for (int way = 0; way < 3; ++way) {
    const ape_rdma_segment empty = {out, 0};
    if (rank == 0) OK(ape_rdma_post_send(port, next, 0, &empty, 1, 0, 31));
    if (way == 0) {
      FD_ZERO(&files);
      FD_SET(file, &files);
      EXPECT(select(file + 1, &files, NULL, NULL, NULL) == 1 && FD_ISSET(file, &files));
    } else if (way == 1) {
      struct pollfd one = {.fd = file, .events = POLLIN};
      EXPECT(poll(&one, 1, -1) == 1 && one.revents == POLLIN);
    } else {
      struct epoll_event wanted = {.events = EPOLLIN}, seen;
      const int set = epoll_create1(0);
      EXPECT(epoll_ctl(set, EPOLL_CTL_ADD, file, &wanted) == 0 && epoll_wait(set, &seen, 1, -1) == 1);
      close(set);
    }
    ape_rdma_event event;
    OK(ape_rdma_poll(port, &event));
    EXPECT(event.kind == APE_RDMA_RX_DONE && event.cookie == 31);
    STATUS(ape_rdma_poll(port, &event), APE_RDMA_NOT_YET);
    if (rank != 0) OK(ape_rdma_post_send(port, next, 0, &empty, 1, 0, 31));
    meet();
  }
}

int main(void) {
  int queues = 0, own = 0;
  size_t most = 0;
  ape_rdma_address address;
  /* A card whose file names no number of ports has one for each process. */
  const ape_rdma_status fifth = ape_rdma_open(4, &port);
  EXPECT(fifth == APE_RDMA_BAD_PORT || fifth == APE_RDMA_PORT_TAKEN);
  STATUS(ape_rdma_open(-2, &port), APE_RDMA_BAD_PORT);
  STATUS(ape_rdma_open(0, NULL), APE_RDMA_BAD_ADDRESS);
  OK(ape_rdma_open(APE_RDMA_ANY_PORT, &port));
  OK(ape_rdma_own_address(port, &address));
  own = address.port;
  OK(ape_rdma_close(port));
  STATUS(ape_rdma_close(port), APE_RDMA_NOT_OPEN);
  STATUS(ape_rdma_open(own == 0 ? 1 : 0, &port), APE_RDMA_PORT_TAKEN);
  OK(ape_rdma_open(own, &port));
  OK(ape_rdma_rank(port, &rank, &size));
  OK(ape_rdma_queues(port, &queues));
  OK(ape_rdma_max_send_bytes(port, &most));
  EXPECT(queues >= 1 && most >= 4096);
  OK(ape_rdma_address_of_rank(port, (rank + 1) % size, &next));
  out = malloc(room);
  in = malloc(room);
  memset(out, 0, room);
  OK(ape_rdma_register(port, out, room));
  OK(ape_rdma_register(port, in, room));
  OK(ape_rdma_publish(port, in, room, &mine));
  exchange_names();
  /* Each now has the name of the buffer of the next: that of the one before, size - 2 steps on. */
  if (size == 1) theirs = mine;
  put_and_get();
  refusals();
  misuse();
  descriptors();
  OK(ape_rdma_unpublish(port, mine));
  OK(ape_rdma_unregister(port, in));
  OK(ape_rdma_close(port));
  if (failures == 0) printf("rank %d of %d: done\n", rank, size);
  return failures == 0 ? 0 : 1;
}
