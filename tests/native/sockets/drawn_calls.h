/* What drawn_calls.c draws from, and how it says what a call has done. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { slots = 12, fixed_ports = 6, most_bytes = 70000 };

/* The state of one sequence. Each process has one; what it draws does not depend on what calls return. */
static struct {
  uint64_t random;
  int files[slots]; /* -1: none */
  int epoll;
  int first_port;
  int seen_ports[64]; /* ephemeral ports, in the order of their appearance */
  int seen_port_count;
  /* A socket leaves a set of epoll with its descriptor here, on Linux with the last copy: no sequence has
   * both. */
  int has_copies, has_set;
  int bad_percent; /* calls with a descriptor, an address or a length that is wrong */
} now;

static struct in_addr own_address, peer_address;
static int is_pair; /* two processes; else one process against itself */
static unsigned char buffer[most_bytes];
static void* unmapped; /* an address of no memory */

static uint64_t next_random(void) { /* splitmix64 */
  uint64_t z = now.random += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}
static int draw(int below) {
  return (int)(next_random() % (uint64_t)below);
}
static int chance(int percent) {
  return draw(100) < percent;
}
#define ONE_OF(...)                             \
  __extension__({                               \
    static const int values_[] = {__VA_ARGS__}; \
    values_[draw(COUNT(values_))];              \
  })

static const char* port_name(int port) {
  static char names[4][16];
  static int next;
  char* const name = names[next++ % 4];
  int seen = 0;
  while (seen < now.seen_port_count && now.seen_ports[seen] != port) ++seen;
  if (port == 0) return "0";
  if (port >= now.first_port && port < now.first_port + fixed_ports) {
    sprintf(name, "P%d", port - now.first_port);
  } else if (is_pair) {
    return "E"; /* two nodes may give the same number */
  } else {
    if (seen == now.seen_port_count && seen < COUNT(now.seen_ports))
      now.seen_ports[now.seen_port_count++] = port;
    sprintf(name, "E%d", seen);
  }
  return name;
}

static const char* host_name(struct in_addr address) {
  if (address.s_addr == 0) return "any";
  if (is_pair) return "some";
  if (address.s_addr == htonl(INADDR_LOOPBACK)) return "loopback";
  return address.s_addr == own_address.s_addr ? "own" : inet_ntoa(address);
}

static void print_address(const void* address, socklen_t capacity, socklen_t length) {
  struct sockaddr_in in = {0};
  if (length > capacity) {
    printf(" [%u of %u bytes]", capacity, length);
    if (capacity < sizeof in) return;
  }
  memcpy(&in, address, sizeof in);
  if (length != sizeof in || in.sin_family != AF_INET) {
    printf(" [%u bytes, family %d]", length, length >= 2 ? in.sin_family : -1);
    return;
  }
  printf(" %s:%s", host_name(in.sin_addr), port_name(ntohs(in.sin_port)));
}

static void print_bytes(const unsigned char* bytes, long count) {
  unsigned sum = 0;
  for (long i = 0; i < count; ++i) sum = sum * 31 + bytes[i];
  printf(" %08x", sum);
}

/* Ends what stands before the equals sign. */
static void print_result(long result) {
  const int error = errno;
  printf(" = %ld", result);
  if (result < 0) printf(" %s", strerror(error));
}

static const char* flag_names(int flags) {
  static const struct {
    int flag;
    const char* name;
  } known[] = {{MSG_PEEK, "peek"},
               {MSG_DONTWAIT, "dontwait"},
               {MSG_WAITALL, "waitall"},
               {MSG_TRUNC, "trunc"},
               {MSG_NOSIGNAL, "nosignal"},
               {MSG_MORE, "more"},
               {MSG_CMSG_CLOEXEC, "cloexec"},
               {MSG_ERRQUEUE, "errqueue"}};
  static char names[128];
  names[0] = '\0';
  for (int i = 0; i < COUNT(known); ++i) {
    if ((flags & known[i].flag) == 0) continue;
    strcat(names, "|");
    strcat(names, known[i].name);
  }
  return names[0] == '\0' ? "0" : names + 1;
}

static volatile sig_atomic_t pipe_signals;
static void note_signal(int number) {
  (void)number;
  ++pipe_signals;
}

static long pause_ms;
static enum { no_pause, short_pause, long_pause } pause_due;
static int sequence, step;

/* Long enough for a delayed acknowledgement, for which small segments may wait, or only for what is sent at
 * once. */
static void await_effects(void) {
  if (pause_due == long_pause) usleep((unsigned)pause_ms * 1000);
  if (pause_due == short_pause) usleep((unsigned)pause_ms * 100);
  pause_due = no_pause;
}

static int draw_slot(void) {
  return draw(slots);
}

/* A slot that has a descriptor, mostly. */
static int draw_live_slot(void) {
  const int any = draw_slot();
  const int nth = draw(slots);
  int live[slots];
  int count = 0;
  const int takes_any = chance(5);
  for (int slot = 0; slot < slots; ++slot) {
    if (now.files[slot] >= 0) live[count++] = slot;
  }
  return takes_any || count == 0 ? any : live[nth % count];
}

/* The descriptor of a slot, or another that is wrong. */
static int file_of(int slot) {
  if (chance(now.bad_percent)) return ONE_OF(-1, 777, 100000);
  return now.files[slot];
}

/* `good`, or an address that cannot be accessed. */
static void* pointer_to(void* good) {
  if (!chance(now.bad_percent)) return good;
  return chance(50) ? NULL : unmapped;
}

static void keep(int slot, int file) {
  if (file < 0) return;
  if (now.files[slot] >= 0) close(now.files[slot]);
  now.files[slot] = file;
}

/* No call of this program waits for ever. */
static void limit_waits(int file, int name, long ms) {
  const struct timeval limit = {.tv_sec = 0, .tv_usec = ms * 1000};
  const int error = errno;
  if (file >= 0) setsockopt(file, SOL_SOCKET, name, &limit, sizeof limit);
  errno = error;
}

static struct sockaddr_in endpoint(struct in_addr host, int port) {
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = host};
}
static struct in_addr numbered(uint32_t address) {
  return (struct in_addr){htonl(address)};
}
static int fixed_port(void) {
  return now.first_port + draw(fixed_ports);
}

static struct sockaddr_in draw_local(void) {
  /* On the host, both processes of a pair are on one node. */
  const struct in_addr hosts[] = {own_address, numbered(INADDR_LOOPBACK), numbered(INADDR_ANY)};
  const int host = draw(is_pair ? 1 : 3);
  struct sockaddr_in local = endpoint(hosts[host], chance(80) ? fixed_port() : 0);
  if (chance(now.bad_percent)) local.sin_addr = numbered(0xc6336401); /* 198.51.100.1: of no node */
  if (chance(now.bad_percent)) local.sin_family = (sa_family_t)ONE_OF(AF_UNSPEC, AF_UNIX, AF_INET6, 99);
  return local;
}

static struct sockaddr_in draw_remote(void) {
  if (is_pair) return endpoint(peer_address, fixed_port());
  const struct in_addr hosts[] = {own_address, numbered(INADDR_LOOPBACK), numbered(INADDR_ANY)};
  struct sockaddr_in remote = endpoint(hosts[draw(10) < 9 ? draw(2) : 2], fixed_port());
  socklen_t length = sizeof remote;
  const int other = now.files[draw_live_slot()];
  if (chance(50) && other >= 0) {
    struct sockaddr_in found = {0};
    getsockname(other, (struct sockaddr*)&found, &length);
    if (found.sin_family == AF_INET && found.sin_port != 0) remote.sin_port = found.sin_port;
  }
  if (chance(now.bad_percent))
    remote.sin_family = (sa_family_t)ONE_OF(AF_UNSPEC, AF_UNSPEC, AF_UNIX, AF_INET6, 99);
  if (chance(now.bad_percent)) remote.sin_port = 0;
  return remote;
}

static socklen_t draw_length(void) {
  if (!chance(now.bad_percent)) return sizeof(struct sockaddr_in);
  return (socklen_t)ONE_OF(0, 1, 2, 8, 15, 17, 64, 128, 129, -1);
}

static void print_asked(const struct sockaddr_in* address, const void* given, socklen_t length) {
  if (given == address && address->sin_family == AF_INET) {
    printf(" %s:%s", host_name(address->sin_addr), port_name(ntohs(address->sin_port)));
  } else {
    printf(" %s", given == NULL ? "null" : given == address ? "family" : "unmapped");
    if (given == address) printf(" %d", address->sin_family);
  }
  if (length != sizeof *address) printf("/%d", (int)length);
}
