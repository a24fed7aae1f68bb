/* The port's life beside MPI's, threads and other ranks: one scenario, named by the argument. */
#include <ape_rdma.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int rank, size;
static ape_rdma_port* port;
static ape_rdma_address other;
static char memory[1 << 16];
static const ape_rdma_segment word = {memory, 8};

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  fprintf(stderr, "lifetime.c:%d: rank %d expected %s\n", line, rank, what);
  exit(1);
}
#define EXPECT(condition) expect((condition) != 0, #condition, __LINE__)
#define STATUS(call, wanted) expect((call) == (wanted), #call " to be " #wanted, __LINE__)
#define OK(call) STATUS(call, APE_RDMA_OK)

static void open_port(void) {
  OK(ape_rdma_open(APE_RDMA_ANY_PORT, &port));
  OK(ape_rdma_rank(port, &rank, &size));
  OK(ape_rdma_address_of_rank(port, (rank + 1) % size, &other));
  OK(ape_rdma_register(port, memory, sizeof memory));
}
static ape_rdma_event waited(void) {
  ape_rdma_event event;
  OK(ape_rdma_wait(port, &event));
  return event;
}
static void meet(void) {
  OK(ape_rdma_post_send(port, other, 0, &word, 1, 0, 77));
  EXPECT(waited().cookie == 77);
}
static ape_rdma_buffer exchange(ape_rdma_buffer mine) {
  memcpy(memory, &mine, sizeof mine);
  OK(ape_rdma_post_send(port, other, 0, &word, 1, 0, 78));
  EXPECT(waited().cookie == 78);
  OK(ape_rdma_read_message(port, &mine, sizeof mine));
  return mine;
}

/* Messages that come after a close meet no library, and then the next port. */
static void late(void) {
  MPI_Init(NULL, NULL);
  open_port();
  if (rank == 0) OK(ape_rdma_close(port));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    OK(ape_rdma_post_send(port, other, 0, &(ape_rdma_segment){memory, 1000}, 1, 0, 5));
    OK(ape_rdma_post_put(port, other, 0, &word, 1, 1, 0, 0, 6));
    EXPECT(waited().kind == APE_RDMA_REFUSED);
  }
  for (int i = 0; i < 10; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) open_port();
  MPI_Barrier(MPI_COMM_WORLD);
  meet();
  OK(ape_rdma_close(port));
  MPI_Finalize();
}

static void after_finalize(void) {
  int file = -1;
  ape_rdma_event event;
  MPI_Init(NULL, NULL);
  open_port();
  OK(ape_rdma_descriptor(port, &file));
  meet();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  STATUS(ape_rdma_wait(port, &event), APE_RDMA_ENDED);
  STATUS(ape_rdma_poll(port, &event), APE_RDMA_ENDED);
  STATUS(ape_rdma_post_send(port, other, 0, &word, 1, 0, 1), APE_RDMA_ENDED);
  STATUS(ape_rdma_close(port), APE_RDMA_ENDED);
  STATUS(ape_rdma_open(APE_RDMA_ANY_PORT, &port), APE_RDMA_ENDED);
}

static void before_init(void) {
  int sum = 0;
  open_port();
  meet();
  MPI_Init(NULL, NULL);
  meet();
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(sum == 1);
  meet();
  OK(ape_rdma_close(port));
  MPI_Finalize();
}

static void* wait_in_thread(void* event) {
  OK(ape_rdma_wait(port, event));
  return NULL;
}
/* A thread waits for what another one causes. */
static void threads(void) {
  pthread_t thread;
  ape_rdma_event event;
  open_port();
  if (rank == 0) {
    pthread_create(&thread, NULL, wait_in_thread, &event);
    usleep(1000);
    OK(ape_rdma_post_send(port, other, 0, &word, 1, 0, 1));
    pthread_join(thread, NULL);
    EXPECT(event.cookie == 2);
  } else {
    EXPECT(waited().cookie == 1);
    OK(ape_rdma_post_send(port, other, 0, &word, 1, 0, 2));
  }
  OK(ape_rdma_close(port));
}

/* Unpublishes, unregisters and frees memory to which puts are under way: each is done or refused. */
static void unpublish(void) {
  enum { puts = 200 };
  int done = 0, refused = 0;
  ape_rdma_event event;
  ape_rdma_buffer buffer = 0;
  open_port();
  char* given = malloc(sizeof memory);
  OK(ape_rdma_register(port, given, sizeof memory));
  OK(ape_rdma_publish(port, given, sizeof memory, &buffer));
  const ape_rdma_buffer there = exchange(buffer);
  const ape_rdma_segment all = {memory, sizeof memory};
  for (int i = 0; rank == 0 && i < puts; ++i)
    OK(ape_rdma_post_put(port, other, 0, &all, 1, there, 0,
                         APE_RDMA_DELIVERED | (i == 20 ? APE_RDMA_NOTIFY : 0), (uint64_t)i));
  if (rank == 1) {
    EXPECT(waited().cookie == 20);
    OK(ape_rdma_unregister(port, given));
    STATUS(ape_rdma_unpublish(port, buffer), APE_RDMA_BAD_BUFFER);
    free(given);
  }
  for (int i = 0; rank == 0 && i < puts; ++i) {
    event = waited();
    EXPECT(event.kind == APE_RDMA_PUT_DELIVERED && event.cookie == (uint64_t)i);
    done += event.status == APE_RDMA_OK;
    refused += event.status == APE_RDMA_BAD_BUFFER;
    EXPECT(event.status != APE_RDMA_OK || refused == 0);
  }
  EXPECT(rank == 1 || (done > 0 && refused > 0 && done + refused == puts));
  OK(ape_rdma_close(port));
}

/* The card still reads memory when the port is closed: close waits. Events of before do not reach the next
 * port. */
static void reopen(void) {
  static char fetched[8];
  ape_rdma_event event;
  ape_rdma_buffer buffer = 0;
  open_port();
  char* given = calloc(2, sizeof memory);
  OK(ape_rdma_register(port, given, 2 * sizeof memory));
  OK(ape_rdma_publish(port, given, 2 * sizeof memory, &buffer));
  const ape_rdma_buffer there = exchange(buffer);
  OK(ape_rdma_register(port, fetched, sizeof fetched));
  if (rank == 1) EXPECT(waited().cookie == 9);
  if (rank == 0) {
    memset(memory, 3, sizeof memory);
    const ape_rdma_segment all = {memory, sizeof memory};
    OK(ape_rdma_post_put(port, other, 0, &all, 1, there, 0, 0, 1));
    OK(ape_rdma_post_put(port, other, 1, &all, 1, there, sizeof memory, APE_RDMA_SIGNAL, 2));
    OK(ape_rdma_post_put(port, other, 1, &all, 1, there, 2 * sizeof memory, APE_RDMA_SIGNAL, 3));
    OK(ape_rdma_post_get(port, other, 2, &(ape_rdma_segment){fetched, 8}, 1, there, 2 * sizeof memory - 8,
                         4));
    OK(ape_rdma_close(port));
    memset(memory, 4, sizeof memory);
    open_port();
    STATUS(ape_rdma_wait_for(port, 1000, &event), APE_RDMA_NOT_YET);
    OK(ape_rdma_post_send(port, other, 0, &word, 1, 0, 9));
  }
  for (size_t i = 0; rank == 1 && i < 2 * sizeof memory; ++i) EXPECT(given[i] == 3);
  OK(ape_rdma_close(port));
}

static void table(void) {
  int count = 0;
  ape_rdma_status status = APE_RDMA_OK;
  ape_rdma_buffer buffer = 0, last = 0;
  open_port();
  for (; status == APE_RDMA_OK && count < 40000; ++count) {
    last = buffer;
    status = ape_rdma_publish(port, memory + count, 8, &buffer);
  }
  EXPECT(status == APE_RDMA_TABLE_FULL && count == 32769);
  const ape_rdma_buffer there = exchange(last);
  memset(memory, rank + 1, 8);
  meet();
  OK(ape_rdma_post_put(port, other, 0, &word, 1, there, 0, APE_RDMA_DELIVERED, 1));
  EXPECT(waited().status == APE_RDMA_OK);
  OK(ape_rdma_unpublish(port, last));
  OK(ape_rdma_publish(port, memory + 40000, 8, &buffer));
  meet();
  OK(ape_rdma_close(port));
}

/* Overlapping buffers: a put needs one that covers it, whatever else begins there. */
static void overlap(void) {
  ape_rdma_buffer wide = 0, inner = 0;
  open_port();
  OK(ape_rdma_publish(port, memory + 1000, 16, &inner));
  OK(ape_rdma_publish(port, memory, 4096, &wide));
  const ape_rdma_buffer there = exchange(wide);
  OK(ape_rdma_post_put(port, other, 0, &(ape_rdma_segment){memory + 8192, 500}, 1, there, 1000,
                       APE_RDMA_DELIVERED, 1));
  EXPECT(waited().status == APE_RDMA_OK);
  OK(ape_rdma_unpublish(port, inner));
  meet();
  OK(ape_rdma_post_put(port, other, 0, &(ape_rdma_segment){memory + 8192, 500}, 1, there, 1000,
                       APE_RDMA_DELIVERED, 2));
  EXPECT(waited().status == APE_RDMA_OK);
  STATUS(ape_rdma_unpublish(port, inner), APE_RDMA_BAD_BUFFER);
  OK(ape_rdma_unpublish(port, wide));
  STATUS(ape_rdma_register(port, memory + 1, (size_t)-1), APE_RDMA_BAD_SIZE);
  meet();
  OK(ape_rdma_close(port));
}

/* Writes to the pipe a little later, in the time of the host. */
static void* write_later(void* pipe_end) {
  syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 20000000}, NULL);
  return write(*(int*)pipe_end, "x", 1) == 1 ? pipe_end : NULL;
}

/* A wait for other files than the port's descriptor is not one for the port. */
static void files(void) {
  int own = -1, ends[2];
  open_port();
  meet();
  OK(ape_rdma_descriptor(port, &own));
  EXPECT(pipe(ends) == 0);
  OK(ape_rdma_post_send(port, other, 0, &word, 1, 0, 9));
  struct pollfd event = {.fd = own, .events = POLLIN};
  EXPECT(poll(&event, 1, -1) == 1);
  for (int way = 0; way < 2; ++way) {
    pthread_t writer;
    char byte;
    pthread_create(&writer, NULL, write_later, &ends[1]);
    struct pollfd other_file = {.fd = ends[0], .events = POLLIN};
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(ends[0], &reads);
    EXPECT((way == 0 ? poll(&other_file, 1, -1) : select(ends[0] + 1, &reads, NULL, NULL, NULL)) == 1);
    EXPECT(read(ends[0], &byte, 1) == 1);
    pthread_join(writer, NULL);
  }
  EXPECT(waited().cookie == 9);
  meet();
  OK(ape_rdma_close(port));
}

/* Rank 1 ends in the middle of what rank 0 posts to it. */
static void dies(void) {
  ape_rdma_event event;
  open_port();
  meet();
  if (rank == 1) exit(3);
  for (int i = 0; i < 100; ++i)
    OK(ape_rdma_post_send(port, other, 0, &(ape_rdma_segment){memory, 4000}, 1, APE_RDMA_SIGNAL,
                          (uint64_t)i));
  for (;;) OK(ape_rdma_wait(port, &event));
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } scenarios[] = {{"late", late},
                   {"after_finalize", after_finalize},
                   {"before_init", before_init},
                   {"threads", threads},
                   {"unpublish", unpublish},
                   {"reopen", reopen},
                   {"table", table},
                   {"overlap", overlap},
                   {"files", files},
                   {"dies", dies}};
  for (size_t i = 0; argc > 1 && i < sizeof scenarios / sizeof scenarios[0]; ++i) {
    if (strcmp(scenarios[i].name, argv[1]) != 0) continue;
    scenarios[i].run();
    printf("done\n");
    return 0;
  }
  return 2;
}
