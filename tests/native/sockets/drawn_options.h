/* Operations of drawn_calls.c that ask for options, names and readiness. */
#define OPTION(level, name) \
  { level, name, #name }
static const struct Option {
  int level;
  int name;
  const char* text;
} options[] = {
    OPTION(SOL_SOCKET, SO_TYPE),
    OPTION(SOL_SOCKET, SO_ERROR),
    OPTION(SOL_SOCKET, SO_REUSEADDR),
    OPTION(SOL_SOCKET, SO_REUSEPORT),
    OPTION(SOL_SOCKET, SO_KEEPALIVE),
    OPTION(SOL_SOCKET, SO_ACCEPTCONN),
    OPTION(SOL_SOCKET, SO_DOMAIN),
    OPTION(SOL_SOCKET, SO_PROTOCOL),
    OPTION(SOL_SOCKET, SO_BROADCAST),
    OPTION(SOL_SOCKET, SO_DONTROUTE),
    OPTION(SOL_SOCKET, SO_OOBINLINE),
    OPTION(SOL_SOCKET, SO_RCVLOWAT),
    OPTION(SOL_SOCKET, SO_SNDLOWAT),
    OPTION(SOL_SOCKET, SO_TIMESTAMP),
    OPTION(SOL_SOCKET, 9999),
    OPTION(IPPROTO_TCP, TCP_NODELAY),
    OPTION(IPPROTO_TCP, TCP_CORK),
    OPTION(IPPROTO_TCP, TCP_KEEPIDLE),
    OPTION(IPPROTO_TCP, TCP_KEEPINTVL),
    OPTION(IPPROTO_TCP, TCP_KEEPCNT),
    OPTION(IPPROTO_TCP, TCP_SYNCNT),
    OPTION(IPPROTO_TCP, TCP_LINGER2),
    OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT),
    OPTION(IPPROTO_TCP, 9999),
    OPTION(IPPROTO_IP, IP_TOS),
    OPTION(IPPROTO_IP, IP_TTL),
    OPTION(IPPROTO_IP, IP_RECVERR),
    OPTION(IPPROTO_IP, IP_PKTINFO),
    OPTION(IPPROTO_IP, IP_RECVTTL),
    OPTION(IPPROTO_IP, IP_MULTICAST_TTL),
    OPTION(IPPROTO_IP, IP_MULTICAST_LOOP),
    OPTION(IPPROTO_IP, IP_FREEBIND),
    OPTION(IPPROTO_IP, 9999),
    OPTION(9999, 1),
    OPTION(SOL_SOCKET, SO_RCVBUF),
    OPTION(SOL_SOCKET, SO_SNDBUF),
};
static const int first_buffer_option = COUNT(options) - 2;

/* Those that are not set here: to the simulated nodes they are unknown, or make other calls give more. */
static int is_only_read(const struct Option* option) {
  static const char* const names[] = {"SO_TIMESTAMP", "IP_RECVERR", "IP_PKTINFO", "IP_RECVTTL",
                                      "IP_FREEBIND"};
  for (int i = 0; i < COUNT(names); ++i) {
    if (strcmp(option->text, names[i]) == 0) return 1;
  }
  return 0;
}

static void do_setsockopt(int slot) {
  const int drawn = draw(COUNT(options));
  const struct Option* const option = &options[is_only_read(&options[drawn]) ? 2 : drawn];
  const int file = file_of(slot);
  int value = ONE_OF(0, 1, 1, 1, 2, 5, 60, 255, 256, 1000, 40000, -1);
  const socklen_t length = chance(80) ? sizeof value : (socklen_t)ONE_OF(0, 1, 2, 3, 5, 8, -1);
  /* A socket with small buffers takes as much as its kernel likes. */
  if (option - options >= first_buffer_option && value < 40000) value = 40000;
  printf("%d setsockopt %s %d/%d", slot, option->text, value, (int)length);
  const int64_t wide = value & 0xffffffffLL;
  memcpy(buffer, &wide, sizeof wide);
  print_result(setsockopt(file, option->level, option->name, pointer_to(buffer), length));
}

static void do_getsockopt(int slot) {
  const struct Option* const option = &options[draw(COUNT(options))];
  const int file = file_of(slot);
  const socklen_t capacity = chance(75) ? sizeof(int) : (socklen_t)ONE_OF(0, 1, 2, 3, 5, 8, 64, -1);
  socklen_t length = capacity;
  memset(buffer, 0, 128);
  printf("%d getsockopt %s /%d", slot, option->text, (int)capacity);
  const int result = getsockopt(file, option->level, option->name, pointer_to(buffer), pointer_to(&length));
  print_result(result);
  int value = 0;
  memcpy(&value, buffer, sizeof value);
  if (result == 0) printf(" %d/%u", value, length);
}

/* Those that are no number. */
static void do_wide_option(int slot) {
  const int file = file_of(slot);
  const int name = ONE_OF(SO_LINGER, SO_RCVTIMEO, SO_SNDTIMEO);
  if (chance(60)) {
    const struct linger linger = {.l_onoff = draw(2), .l_linger = ONE_OF(0, 0, 1, -1)};
    const struct timeval limit = {.tv_sec = ONE_OF(0, 0, 2, -1),
                                  .tv_usec = ONE_OF(0, 20000, 500000, 1000000, -1)};
    const socklen_t length = chance(80) ? 16 : (socklen_t)ONE_OF(0, 4, 7, 8, 20);
    memset(buffer, 0, 64);
    if (name == SO_LINGER) {
      memcpy(buffer, &linger, sizeof linger);
    } else {
      memcpy(buffer, &limit, sizeof limit);
    }
    printf("%d setsockopt %d %d %d %ld %ld/%u", slot, name, linger.l_onoff, linger.l_linger, limit.tv_sec,
           limit.tv_usec, length);
    print_result(setsockopt(file, SOL_SOCKET, name, pointer_to(buffer), length));
  } else {
    const socklen_t capacity = chance(75) ? 16 : (socklen_t)ONE_OF(0, 1, 4, 7, 8, 20);
    socklen_t length = capacity;
    memset(buffer, 0, 64);
    printf("%d getsockopt %d /%u", slot, name, capacity);
    const int result = getsockopt(file, SOL_SOCKET, name, pointer_to(buffer), pointer_to(&length));
    print_result(result);
    if (result == 0) printf(" %u", length);
    if (result == 0) print_bytes(buffer, 20);
  }
}

static void do_name(int slot) {
  const int is_peer = draw(2);
  struct sockaddr_storage found = {0};
  const socklen_t capacity = chance(70) ? sizeof found : (socklen_t)ONE_OF(0, 1, 2, 4, 8, 15, 16, 17, -1);
  socklen_t length = capacity;
  void* const address = pointer_to(&found);
  void* const size = pointer_to(&length);
  const int file = file_of(slot);
  printf("%d %s", slot, is_peer ? "getpeername" : "getsockname");
  const int result = is_peer ? getpeername(file, address, size) : getsockname(file, address, size);
  print_result(result);
  if (result == 0 && address == &found && size == &length) print_address(&found, capacity, length);
}

static void do_poll(int unused) {
  (void)unused;
  struct pollfd files[4];
  const int count = 1 + draw(4);
  int limit_ms = ONE_OF(0, 10);
  printf("- poll");
  for (int i = 0; i < count; ++i) {
    const int slot = draw_live_slot();
    files[i] = (struct pollfd){
        .fd = file_of(slot),
        .events = (short)ONE_OF(POLLIN, POLLOUT, POLLIN | POLLOUT, POLLIN | POLLRDHUP, POLLRDHUP, 0, POLLPRI,
                                POLLIN | POLLOUT | POLLRDHUP | POLLPRI | POLLRDNORM | POLLWRNORM)};
    printf(" %d/%x", slot, (unsigned short)files[i].events);
  }
  const int result = poll(pointer_to(files), (nfds_t)count, limit_ms);
  print_result(result);
  for (int i = 0; result >= 0 && i < count; ++i) printf(" %x", (unsigned short)files[i].revents);
}

static void do_select(int unused) {
  (void)unused;
  fd_set sets[3];
  int most = 0;
  struct timeval limit = {.tv_sec = 0, .tv_usec = ONE_OF(0, 10000)};
  if (chance(now.bad_percent)) limit.tv_usec = ONE_OF(-1, 0);
  printf("- select");
  for (int set = 0; set < 3; ++set) FD_ZERO(&sets[set]);
  for (int i = 0; i < 3; ++i) {
    const int slot = draw_live_slot();
    const int set = draw(3);
    if (now.files[slot] < 0) continue;
    FD_SET(now.files[slot], &sets[set]);
    if (now.files[slot] >= most) most = now.files[slot] + 1;
    printf(" %d/%d", slot, set);
  }
  if (chance(now.bad_percent)) most = -1;
  const int result = select(most, &sets[0], &sets[1], chance(50) ? &sets[2] : NULL, &limit);
  print_result(result);
  for (int slot = 0; result > 0 && slot < slots; ++slot) {
    for (int set = 0; set < 3; ++set) {
      if (now.files[slot] >= 0 && FD_ISSET(now.files[slot], &sets[set])) printf(" %d/%d", slot, set);
    }
  }
}

static void do_epoll_ctl(int slot, unsigned extra) {
  const int operation = chance(now.bad_percent)
                            ? ONE_OF(0, 4)
                            : ONE_OF(EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL);
  const unsigned events = (unsigned)ONE_OF(EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT, EPOLLIN | EPOLLRDHUP, 0,
                                           EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI) |
                          extra;
  struct epoll_event event = {.events = events, .data.u32 = (uint32_t)slot};
  printf("%d epoll_ctl %d %x", slot, operation, events);
  if (now.has_copies) return;
  now.has_set = 1;
  print_result(epoll_ctl(chance(now.bad_percent) ? ONE_OF(-1, 0, 777) : now.epoll, operation, file_of(slot),
                         pointer_to(&event)));
}

static int by_slot(const void* left, const void* right) {
  const struct epoll_event* const first = left;
  const struct epoll_event* const second = right;
  return (int)first->data.u32 - (int)second->data.u32;
}

/* In the order of slots: Linux has its own. */
static void do_epoll_wait(int unused) {
  (void)unused;
  struct epoll_event events[slots * 2];
  const int count = chance(now.bad_percent) ? ONE_OF(0, -1) : slots * 2;
  const int limit_ms = ONE_OF(0, 10);
  printf("- epoll_wait");
  const int result = epoll_wait(now.epoll, pointer_to(events), count, limit_ms);
  print_result(result);
  if (result > 0) qsort(events, (size_t)result, sizeof events[0], by_slot);
  for (int i = 0; i < result; ++i) printf(" %u/%x", events[i].data.u32, events[i].events);
}

static void do_socketpair(int slot) {
  int files[2] = {-1, -1};
  printf("%d socketpair", slot);
  print_result(socketpair(AF_INET, ONE_OF(SOCK_STREAM, SOCK_DGRAM), 0, files));
}
