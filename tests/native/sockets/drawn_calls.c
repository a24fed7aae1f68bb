/* Sequences of socket calls that are drawn from seeds. Says what each call has done, without what differs
 * from run to run: descriptors are named by their slot, ports by their order. Natively it does so against the
 * host's kernel.
 *
 *   drawn_calls PAUSE_MS FIRST_PORT ADDRESS SECOND_ADDRESS|- PROFILE:SEED...
 *
 * With a second address two processes take turns, of which $APENET_RANK is the number. They tell each other
 * by a connection to the port FIRST_PORT - 1 of the first. A call is made once the one before has had all of
 * its effects: PAUSE_MS later. */
#include "drawn_calls.h"

#include "drawn_options.h"
#include "drawn_transfers.h"

enum { steps = 40, ports_of_a_sequence = 16 };

static const struct {
  const char* name;
  const char* letters; /* operations: each step draws one, and the first two are the first steps */
  int bad_percent;
  int is_pair;
} profiles[] = {
    {"streams", "TTSSSRRRhxnip", 0, 0},
    {"connections", "sssbbllccccccaaaaaanp", 0, 0},
    {"names", "TUsblcaTUnnnnnnnx", 3, 0},
    {"halves", "TTSSRRRhhhhxppgn", 0, 0},
    {"options", "TUsooooooOOgggggglac", 2, 0},
    {"ends", "TTSSRRxxxhhppgi", 0, 0},
    {"datagrams", "uubSSSSRRRxnip", 0, 0},
    {"peers", "UUuScccSRRRhnp", 0, 0},
    {"copies", "TTSSRRddddffxxin", 2, 0},
    {"waits", "TTUSSSRRppppqqqqhx", 0, 0},
    {"levels", "TUSSRReeeewwwwhx", 0, 0},
    {"edges", "TUSSRRREEEEwwwwwhx", 0, 0},
    {"messages", "TTUUMMMMmmmm", 3, 0},
    {"vectors", "TTUUVVVVvvvv", 3, 0},
    {"wrong", "TUsbblcaSRMmVvhxdfioOgnpqewP", 35, 0},
    {"ports", "sssbbbbbblloonnx", 0, 0},
    {"refused", "ssucccccbSRpgghx", 0, 0},
    {"peeks", "TTUUSSKKKKKKi", 0, 0},
    {"lengths", "TTUUSSBBRRZZ", 0, 0},
    {"everything", "TUsbblccaSSSRRRMmVvhxdfioOgnpqeEwPK", 8, 0},
    {"pair-streams", "TTSSSRRRhxnip", 0, 1},
    {"pair-datagrams", "DuDSSSSRRRhnip", 0, 1},
    {"pair-ends", "TTSSRRxxhhppggi", 0, 1},
    {"pair-everything", "TTDSSSRRRMmVvhxdfioOgnpqeEwK", 4, 1},
};

static int control = -1; /* connection to the other process */
static int own_number;

static void make_socket(int slot, int type) {
  int domain = AF_INET;
  int protocol = 0;
  if (chance(25)) protocol = type == SOCK_DGRAM ? IPPROTO_UDP : IPPROTO_TCP;
  int flags = ONE_OF(0, 0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (chance(now.bad_percent)) domain = ONE_OF(-1, 45, 1000);
  if (chance(now.bad_percent)) type = ONE_OF(0, SOCK_RDM, SOCK_SEQPACKET, SOCK_DCCP, 7, 11, 15, -1);
  if (chance(now.bad_percent))
    protocol = ONE_OF(IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDP, 253, -1, 255, 256, 1000);
  if (chance(now.bad_percent)) flags = ONE_OF(0x100, 0x10000, 0x40000000);
  printf("%d socket %d %d %x %d", slot, domain, type, flags, protocol);
  const int file = socket(domain, type | flags, protocol);
  print_result(file < 0 ? -1 : 0);
  keep(slot, file);
}

static void do_bind(int slot) {
  struct sockaddr_in local = draw_local();
  const socklen_t length = draw_length();
  void* const given = pointer_to(&local);
  printf("%d bind", slot);
  print_asked(&local, given, length);
  print_result(bind(file_of(slot), given, length));
}

static void do_listen(int slot) {
  const int backlog = ONE_OF(12, 16, 128, -1, 5000);
  printf("%d listen %d", slot, backlog);
  print_result(listen(file_of(slot), backlog));
}

static void connect_to(int slot, struct sockaddr_in remote) {
  const socklen_t length = draw_length();
  void* const given = pointer_to(&remote);
  const int file = file_of(slot);
  printf("%d connect", slot);
  print_asked(&remote, given, length);
  limit_waits(file, SO_SNDTIMEO, 300);
  print_result(connect(file, given, length));
  limit_waits(file, SO_SNDTIMEO, 0);
}

static void do_accept(int slot) {
  const int to = draw_slot();
  const int flags = ONE_OF(-1, -1, 0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC);
  const int wrong = chance(now.bad_percent) ? 0x10 : 0;
  struct sockaddr_storage peer = {0};
  const socklen_t capacity = chance(80) ? sizeof peer : (socklen_t)ONE_OF(0, 1, 2, 4, 8, 16, 17);
  socklen_t length = capacity;
  void* const given = chance(70) ? pointer_to(&peer) : NULL;
  const int file = file_of(slot);
  printf("%d accept to %d, %x", slot, to, (unsigned)(flags | wrong));
  if (now.files[to] >= 0 && to != slot) close(now.files[to]);
  if (to != slot) now.files[to] = -1;
  limit_waits(file, SO_RCVTIMEO, 20);
  const int made = flags < 0 ? accept(file, given, &length) : accept4(file, given, &length, flags | wrong);
  limit_waits(file, SO_RCVTIMEO, 0);
  print_result(made < 0 ? -1 : 0);
  if (made < 0) return;
  if (given == &peer) print_address(&peer, capacity, length);
  printf(" flags %x %x", (unsigned)fcntl(made, F_GETFL) & O_NONBLOCK, (unsigned)fcntl(made, F_GETFD));
  limit_waits(made, SO_RCVTIMEO, 0);
  keep(to, made);
}

static void do_shutdown(int slot) {
  const int how = chance(now.bad_percent) ? ONE_OF(-1, 3, 99) : draw(3);
  printf("%d shutdown %d", slot, how);
  print_result(shutdown(file_of(slot), how));
  pause_due = long_pause;
}

static void do_close(int slot) {
  printf("%d close", slot);
  print_result(close(file_of(slot)));
  if (now.files[slot] >= 0 && fcntl(now.files[slot], F_GETFD) < 0) now.files[slot] = -1;
  pause_due = long_pause;
}

static void do_dup(int slot) {
  const int to = draw_slot();
  const int way = draw(4);
  const int file = file_of(slot);
  int made = -1;
  printf("%d dup by %d to %d", slot, way, to);
  if (now.has_set) return;
  now.has_copies = 1;
  if (way == 0) made = dup(file);
  if (way == 1) made = fcntl(file, ONE_OF(F_DUPFD, F_DUPFD_CLOEXEC), 20);
  if (way >= 2) {
    const int target = chance(now.bad_percent) ? -1 : now.files[to];
    const int flags = chance(now.bad_percent) ? 0x10 : ONE_OF(0, O_CLOEXEC);
    made = way == 2 ? dup2(file, target) : dup3(file, target, flags);
    print_result(made < 0 ? -1 : 0);
    return;
  }
  print_result(made < 0 ? -1 : 0);
  if (made < 0) return;
  printf(" flags %x %x", (unsigned)fcntl(made, F_GETFL) & O_NONBLOCK, (unsigned)fcntl(made, F_GETFD));
  keep(to, made);
}

static void do_fcntl(int slot) {
  const int file = file_of(slot);
  const int way = draw(5);
  const int flag = chance(50);
  printf("%d fcntl %d %d", slot, way, flag);
  int result = 0;
  if (way == 0) result = fcntl(file, F_GETFL);
  if (way == 1) result = fcntl(file, F_SETFL, flag ? O_NONBLOCK : 0);
  if (way == 2) result = fcntl(file, F_GETFD);
  if (way == 3) result = fcntl(file, F_SETFD, flag ? FD_CLOEXEC : 0);
  if (way == 4) result = fcntl(file, 9999, 0);
  print_result(result);
}

static void do_ioctl(int slot) {
  const int file = file_of(slot);
  const unsigned long requests[] = {FIONREAD, FIONREAD, FIONREAD, SIOCOUTQ, FIONBIO, SIOCATMARK, 0x12345};
  const int request = draw(COUNT(requests));
  int value = chance(50);
  printf("%d ioctl %lx", slot, requests[request]);
  const int result = ioctl(file, requests[request], pointer_to(&value));
  print_result(result);
  if (result >= 0) printf(" %d", value);
}

/* Calls of one step that make a connection, or two datagram sockets that know each other: part 0 and part 1
 * are of different processes of a pair, and part 2 is of the first. */
enum { made_connection = 1, made_datagrams = 2 };

static void make_listener(int slot, int port) {
  const struct sockaddr_in local = endpoint(is_pair ? own_address : numbered(INADDR_ANY), port);
  const int one = 1;
  const int made = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  print_result(bind(made, (const struct sockaddr*)&local, sizeof local));
  print_result(listen(made, 16));
  keep(slot, made);
}

static void make_client(int slot, int port) {
  const struct in_addr there = is_pair ? peer_address : chance(50) ? own_address : numbered(INADDR_LOOPBACK);
  keep(slot, socket(AF_INET, SOCK_STREAM | ONE_OF(0, SOCK_NONBLOCK), 0));
  connect_to(slot, endpoint(there, port));
}

static void make_server(int slot, int listener) {
  if (now.files[slot] >= 0) close(now.files[slot]);
  now.files[slot] = -1;
  const int from = now.files[listener];
  limit_waits(from, SO_RCVTIMEO, 20);
  const int made = accept4(from, NULL, NULL, ONE_OF(0, SOCK_NONBLOCK));
  limit_waits(from, SO_RCVTIMEO, 0);
  print_result(made < 0 ? -1 : 0);
  limit_waits(made, SO_RCVTIMEO, 0);
  keep(slot, made);
}

static void make_datagrams(int slot, int port, int other_port) {
  const struct sockaddr_in own = endpoint(own_address, port);
  const struct sockaddr_in other = endpoint(is_pair ? peer_address : own_address, other_port);
  const int one = 1;
  const int made = socket(AF_INET, SOCK_DGRAM | ONE_OF(0, SOCK_NONBLOCK), 0);
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  print_result(bind(made, (const struct sockaddr*)&own, sizeof own));
  if (chance(70)) print_result(connect(made, (const struct sockaddr*)&other, sizeof other));
  keep(slot, made);
}

static void make_part(int kind, int part, int listener, int client, int server, int port) {
  const int bad_percent = now.bad_percent;
  const int next_port = port == now.first_port ? port + 1 : port - 1;
  now.bad_percent = 0;
  printf("make %d.%d in %d ", kind, part, listener);
  if (kind == made_datagrams) {
    make_datagrams(part == 0 ? client : server, is_pair || part == 0 ? port : next_port,
                   is_pair || part == 1 ? port : next_port);
  } else if (part == 0) {
    make_listener(listener, port);
  } else if (part == 1) {
    make_client(client, port);
  } else {
    make_server(server, listener);
  }
  now.bad_percent = bad_percent;
}

/* Those whose arguments are drawn in the call, too. */
static void make_any_socket(int slot) {
  make_socket(slot, ONE_OF(SOCK_STREAM, SOCK_STREAM, SOCK_DGRAM));
}
static void make_datagram_socket(int slot) {
  make_socket(slot, SOCK_DGRAM);
}
static void do_connect(int slot) {
  connect_to(slot, draw_remote());
}
static void do_usual_send(int slot) {
  do_send(slot, draw_bytes());
}
static void do_long_send(int slot) {
  do_send(slot, ONE_OF(0, 1, 20000, 65507, 65508, 65535, 65536, 70000));
}
static void do_long_receive(int slot) {
  do_receive(slot, ONE_OF(0, 1, 65507, 70000), draw_receive_flags());
}
static void do_level_epoll_ctl(int slot) {
  do_epoll_ctl(slot, 0);
}
static void do_edge_epoll_ctl(int slot) {
  do_epoll_ctl(slot, (unsigned)ONE_OF((int)EPOLLET, (int)EPOLLET, EPOLLONESHOT, (int)EPOLLET | EPOLLONESHOT));
}

static const struct {
  char letter;
  void (*act)(int slot);
} operations[] = {
    {'s', make_any_socket},
    {'u', make_datagram_socket},
    {'b', do_bind},
    {'l', do_listen},
    {'c', do_connect},
    {'a', do_accept},
    {'S', do_usual_send},
    {'B', do_long_send},
    {'R', do_usual_receive},
    {'Z', do_long_receive},
    {'K', do_peek},
    {'V', do_writev},
    {'v', do_readv},
    {'M', do_sendmsg},
    {'m', do_recvmsg},
    {'h', do_shutdown},
    {'x', do_close},
    {'d', do_dup},
    {'f', do_fcntl},
    {'i', do_ioctl},
    {'o', do_setsockopt},
    {'O', do_wide_option},
    {'g', do_getsockopt},
    {'n', do_name},
    {'p', do_poll},
    {'q', do_select},
    {'e', do_level_epoll_ctl},
    {'E', do_edge_epoll_ctl},
    {'w', do_epoll_wait},
    {'P', do_socketpair},
};

static void act(char letter, int slot) {
  for (int i = 0; i < COUNT(operations); ++i) {
    if (operations[i].letter == letter) operations[i].act(slot);
  }
}

/* Runs action in the process whose turn it is; the other waits until it is done. */
#define IN_TURN(number, action)                                \
  do {                                                         \
    const uint64_t before_ = now.random;                       \
    char token_ = 0;                                           \
    await_effects();                                           \
    if (!is_pair || own_number == (number)) {                  \
      printf("%d.%d.%d ", sequence, step, part);               \
      action;                                                  \
      printf("\n");                                            \
      if (pause_due == no_pause) pause_due = short_pause;      \
      token_ = (char)pause_due;                                \
      if (is_pair && write(control, &token_, 1) != 1) exit(3); \
    } else {                                                   \
      if (read(control, &token_, 1) != 1) exit(4);             \
      pause_due = token_;                                      \
    }                                                          \
    now.random = before_;                                      \
    next_random();                                             \
  } while (0)

static void do_step(const char* letters) {
  const int drawn = draw((int)strlen(letters));
  const char letter = letters[step <= 2 ? step - 1 : drawn];
  const int turn = draw(2);
  int part = 0;
  if (letter != 'T' && letter != 'U' && letter != 'D') {
    IN_TURN(turn, act(letter, strchr("suP", letter) != NULL ? draw_slot() : draw_live_slot()));
    return;
  }
  const int slot = draw_slot();
  const int kind = letter == 'T' ? made_connection : made_datagrams;
  const int port = fixed_port();
  const int client = (slot + 1 + draw(3)) % slots;
  const int server = (slot + 4 + draw(3)) % slots;
  for (; part < (kind == made_connection ? 3 : 2); ++part)
    IN_TURN((turn + part) % 2, make_part(kind, part, slot, client, server, port));
}

static void run_sequence(int profile, int seed, int port) {
  memset(&now, 0, sizeof now);
  now.random = (uint64_t)seed * 1000003 + (uint64_t)profile * 7919;
  now.first_port = port;
  now.bad_percent = profiles[profile].bad_percent;
  now.epoll = epoll_create1(0);
  for (int slot = 0; slot < slots; ++slot) now.files[slot] = -1;
  printf("%d.0.0 %s:%d\n", sequence, profiles[profile].name, seed);
  for (step = 1; step <= steps; ++step) {
    now.random = (uint64_t)seed * 1000003 + (uint64_t)profile * 7919 + (uint64_t)step * 104729;
    next_random();
    do_step(profiles[profile].letters);
  }
  for (int slot = 0; slot < slots; ++slot) {
    if (now.files[slot] >= 0) close(now.files[slot]);
  }
  close(now.epoll);
  pause_due = short_pause;
  await_effects();
}

static void meet(int port) {
  const struct sockaddr_in address = endpoint(own_number == 0 ? own_address : peer_address, port);
  const int one = 1;
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (own_number == 0) {
    if (bind(file, (const struct sockaddr*)&address, sizeof address) != 0 || listen(file, 1) != 0) exit(5);
    control = accept(file, NULL, NULL);
    close(file);
  } else {
    control = file;
    for (int tries = 0; connect(control, (const struct sockaddr*)&address, sizeof address) != 0; ++tries) {
      if (tries == 1000) exit(6);
      usleep(10000);
    }
  }
  setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int main(int count, char** arguments) {
  if (count < 6) return 2;
  signal(SIGPIPE, note_signal);
  setvbuf(stdout, NULL, _IOLBF, 0);
  pause_ms = atol(arguments[1]);
  const int first_port = atoi(arguments[2]);
  inet_aton(arguments[3], &own_address);
  is_pair = inet_aton(arguments[4], &peer_address);
  if (is_pair) own_number = atoi(getenv("APENET_RANK"));
  if (own_number == 1) inet_aton(arguments[3], &peer_address);
  if (own_number == 1) inet_aton(arguments[4], &own_address);
  unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (is_pair) meet(first_port - 1);
  for (sequence = 0; sequence < count - 5; ++sequence) {
    const char* const colon = strchr(arguments[5 + sequence], ':');
    int profile = 0;
    while (strncmp(profiles[profile].name, arguments[5 + sequence],
                   (size_t)(colon - arguments[5 + sequence])) != 0 ||
           profiles[profile].name[colon - arguments[5 + sequence]] != '\0') {
      if (++profile == COUNT(profiles)) return 2;
    }
    run_sequence(profile, atoi(colon + 1), first_port + ports_of_a_sequence * sequence);
  }
  return 0;
}
