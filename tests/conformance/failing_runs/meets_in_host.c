// Ranks that use MPI and also communicate outside it, so that one waits in the host for another that waits
// for virtual time. The first argument names the means, the second a folder for the program.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "../c/check.h"

enum { rounds = 5, sleep_us = 1000 };

static struct World world;
static char path[512];

static int is_mode(const char* mode, const char* name) {
  return strcmp(mode, name) == 0;
}

static int address_of(struct sockaddr_un* address) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  memcpy(address->sun_path, path, strlen(path) + 1);
  return socket(AF_UNIX, SOCK_STREAM, 0);
}

// Rank 0 connects to rank 1.
static int meet_at_a_socket(void) {
  struct sockaddr_un address;
  int fd = address_of(&address);
  if (world.rank == 1) {
    if (bind(fd, (struct sockaddr*)&address, sizeof address) != 0 || listen(fd, 1) != 0) exit(3);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == 0) {
    MPI_Recv(NULL, 0, MPI_INT, 2, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) exit(4);
  }
  if (world.rank == 1) fd = accept(fd, NULL, NULL);
  if (world.rank == 2) MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD);
  return fd;
}

// Two fifos: rank 0 writes into the first and reads from the second.
static void meet_in_fifos(int* in, int* out) {
  char names[2][sizeof path + 2];
  for (int i = 0; i < 2; ++i) {
    snprintf(names[i], sizeof names[i], "%s%d", path, i);
    if (world.rank == 0 && mkfifo(names[i], 0600) != 0) exit(5);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank > 1) return;
  const int first = open(names[0], world.rank == 0 ? O_WRONLY : O_RDONLY);
  const int second = open(names[1], world.rank == 0 ? O_RDONLY : O_WRONLY);
  *in = world.rank == 0 ? second : first;
  *out = world.rank == 0 ? first : second;
}

static _Atomic int* shared_word(void) {
  const int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) exit(6);
  return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void set_word(_Atomic int* word, int value) {
  atomic_store(word, value);
  syscall(SYS_futex, word, FUTEX_WAKE, 8, NULL, NULL, 0);
}

static void await_word(_Atomic int* word, int value) {
  for (int seen = atomic_load(word); seen != value; seen = atomic_load(word))
    syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void tell(int fd, char c) {
  if (write(fd, &c, 1) != 1) exit(7);
}

// Polls a few times for data that has not arrived yet.
static void poll_nothing(int fd) {
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  for (int i = 0; i < 5; ++i)
    if (poll(&ready, 1, 1) != 0) exit(12);
}

static void hear(int fd, char expected, const char* mode) {
  char c = 0;
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  if (is_mode(mode, "poll") && poll(&ready, 1, -1) != 1) exit(8);
  while (is_mode(mode, "ticks") && world.rank == 0 && poll(&ready, 1, 1) == 0) continue;
  if (read(fd, &c, 1) != 1 || c != expected) exit(9);
}

// Rank 1 waits in the host for rank 0, which first waits for a message that rank 2 sends a millisecond of
// virtual time later. Then rank 0 waits in the host for rank 1, which first exchanges messages with rank 3.
static void take_turns(const char* mode, int in, int out, _Atomic int* word) {
  int value = 0;
  for (int round = 0; round < rounds; ++round) {
    switch (world.rank) {
      case 0:
        MPI_Recv(&value, 1, MPI_INT, 2, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (is_mode(mode, "ticks")) poll_nothing(in);
        if (word != NULL) set_word(word, 2 * round + 1);
        if (word == NULL) tell(out, 'x');
        if (word != NULL) await_word(word, 2 * round + 2);
        if (word == NULL) hear(in, 'y', mode);
        break;
      case 1:
        if (word != NULL) await_word(word, 2 * round + 1);
        if (word == NULL) hear(in, 'x', mode);
        // The sleep of rank 2 has ended.
        if (MPI_Wtime() < (round + 1) * sleep_us * 1e-6) exit(10);
        MPI_Send(&round, 1, MPI_INT, 3, round, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, 3, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (word != NULL) set_word(word, 2 * round + 2);
        if (word == NULL) tell(out, 'y');
        break;
      case 2:
        usleep(sleep_us);
        MPI_Send(&round, 1, MPI_INT, 0, round, MPI_COMM_WORLD);
        break;
      default:
        MPI_Recv(&value, 1, MPI_INT, 1, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&round, 1, MPI_INT, 1, round, MPI_COMM_WORLD);
        break;
    }
  }
}

// Rank 1 waits in the host for data that never arrives, while the others wait for it.
static void wait_for_ever(const char* mode) {
  int fds[2];
  char c = 0;
  if (world.rank == 1 && is_mode(mode, "dead-socket"))
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 || read(fds[0], &c, 1) != 1) exit(11);
  if (world.rank == 1 && is_mode(mode, "dead-memory")) await_word(shared_word(), 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  world = begin_program(&argc, &argv);
  if (argc != 3 || world.size != 4) return 2;
  const char* mode = argv[1];
  snprintf(path, sizeof path, "%s/meet", argv[2]);
  int in = -1;
  int out = -1;
  _Atomic int* word = NULL;
  if (is_mode(mode, "socket") || is_mode(mode, "poll") || is_mode(mode, "ticks"))
    in = out = meet_at_a_socket();
  if (is_mode(mode, "fifo")) meet_in_fifos(&in, &out);
  if (is_mode(mode, "memory")) word = shared_word();
  if (in >= 0 || word != NULL || is_mode(mode, "fifo")) take_turns(mode, in, out, word);
  if (strncmp(mode, "dead", 4) == 0) wait_for_ever(mode);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == 0) printf("done\n");
  return MPI_Finalize();
}
