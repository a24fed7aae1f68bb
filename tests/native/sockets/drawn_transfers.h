/* Operations of drawn_calls.c that send and receive. */
/* Lengths are such that what is on its way fits into the buffers of both kernels. */
static long draw_bytes(void) {
  return ONE_OF(0, 1, 2, 7, 10, 64, 100, 500, 1000, 1460, 3000, 9000);
}

static void fill(long bytes) {
  for (long i = 0; i < bytes; ++i) buffer[i] = (unsigned char)(step * 31 + i * 7);
}

static void print_sent(long result, int signals_before) {
  print_result(result);
  if (pipe_signals != signals_before) printf(" SIGPIPE");
  pause_due = long_pause;
}

static int draw_send_flags(void) {
  return ONE_OF(0, 0, 0, MSG_NOSIGNAL, MSG_NOSIGNAL, MSG_DONTWAIT, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void do_send(int slot, long bytes) {
  const int before = pipe_signals;
  const int flags = draw_send_flags();
  const int way = draw(4);
  struct sockaddr_in remote = draw_remote();
  const socklen_t length = draw_length();
  void* const target = pointer_to(&remote);
  void* const data = pointer_to(buffer);
  const int file = file_of(slot);
  long result = 0;
  fill(bytes);
  limit_waits(file, SO_SNDTIMEO, 100);
  if (way == 0) {
    printf("%d write %ld", slot, bytes);
    result = write(file, data, (size_t)bytes);
  } else if (way == 1) {
    printf("%d send %ld %s", slot, bytes, flag_names(flags));
    result = send(file, data, (size_t)bytes, flags);
  } else {
    printf("%d sendto %ld %s", slot, bytes, flag_names(flags));
    print_asked(&remote, target, length);
    result = sendto(file, data, (size_t)bytes, flags, target, length);
  }
  limit_waits(file, SO_SNDTIMEO, 0);
  if (data != buffer) printf(" from %s", data == NULL ? "null" : "unmapped");
  print_sent(result, before);
}

static void do_receive(int slot, long bytes, int flags) {
  const int way = draw(3);
  struct sockaddr_storage peer = {0};
  const socklen_t capacity = chance(85) ? sizeof peer : (socklen_t)ONE_OF(0, 1, 2, 4, 8, 16, 17);
  socklen_t length = capacity;
  void* const data = pointer_to(buffer);
  void* const from = pointer_to(&peer);
  void* const from_length = pointer_to(&length);
  const int file = file_of(slot);
  long result = 0;
  memset(buffer, 0xee, sizeof buffer);
  limit_waits(file, SO_RCVTIMEO, 20);
  if (way == 0 && flags == 0) {
    printf("%d read %ld", slot, bytes);
    result = read(file, data, (size_t)bytes);
  } else if (way == 1) {
    printf("%d recv %ld %s", slot, bytes, flag_names(flags));
    result = recv(file, data, (size_t)bytes, flags);
  } else {
    printf("%d recvfrom %ld %s", slot, bytes, flag_names(flags));
    result = recvfrom(file, data, (size_t)bytes, flags, from, from_length);
    if (from != &peer) printf(" from %s", from == NULL ? "null" : "unmapped");
    if (from_length != &length) printf(" length %s", from_length == NULL ? "null" : "unmapped");
  }
  limit_waits(file, SO_RCVTIMEO, 0);
  if (data != buffer) printf(" to %s", data == NULL ? "null" : "unmapped");
  print_result(result);
  if (result >= 0) print_bytes(buffer, bytes < result ? bytes : result);
  if (result >= 0 && way == 2 && from == &peer && from_length == &length)
    print_address(&peer, capacity, length);
}

static int draw_receive_flags(void) {
  return ONE_OF(0, 0, 0, 0, MSG_DONTWAIT, MSG_WAITALL, MSG_PEEK, MSG_TRUNC);
}

static void do_usual_receive(int slot) {
  const long bytes = ONE_OF(0, 1, 5, 10, 100, 1000, 5000, 20000, 65536);
  do_receive(slot, bytes, draw_receive_flags());
}

static void do_peek(int slot) {
  static const int all[] = {MSG_PEEK, MSG_TRUNC, MSG_WAITALL, MSG_DONTWAIT};
  int flags = 0;
  for (int i = 0; i < COUNT(all); ++i) flags |= chance(50) ? all[i] : 0;
  do_receive(slot, ONE_OF(0, 1, 3, 10, 100, 2000), flags);
}

static struct iovec* list_of(struct iovec* parts) {
  return chance(now.bad_percent) ? NULL : parts;
}

static void shape_parts(struct iovec* parts, int count, long bytes) {
  long at = 0;
  for (int i = 0; i < count; ++i) {
    const long part = i + 1 == count ? bytes - at : draw((int)(bytes - at) + 1);
    parts[i] = (struct iovec){.iov_base = pointer_to(buffer + at), .iov_len = (size_t)part};
    printf("%s%ld%s", i == 0 ? " " : "+", part, parts[i].iov_base == buffer + at ? "" : "!");
    at += part;
  }
}

static int draw_count(void) {
  return chance(now.bad_percent) ? ONE_OF(-1, 1025, 0) : ONE_OF(0, 1, 1, 2, 3, 3);
}

static void do_writev(int slot) {
  const int before = pipe_signals;
  static struct iovec parts[8];
  const int count = draw_count();
  const int file = file_of(slot);
  const long bytes = draw_bytes();
  fill(bytes);
  printf("%d writev", slot);
  shape_parts(parts, count < 0 || count > 8 ? 2 : count, bytes);
  limit_waits(file, SO_SNDTIMEO, 100);
  const long result = writev(file, list_of(parts), count);
  limit_waits(file, SO_SNDTIMEO, 0);
  printf(" count %d", count);
  print_sent(result, before);
}

static void do_readv(int slot) {
  static struct iovec parts[8];
  const int count = draw_count();
  const int file = file_of(slot);
  memset(buffer, 0xee, sizeof buffer);
  printf("%d readv", slot);
  shape_parts(parts, count < 0 || count > 8 ? 2 : count, draw_bytes());
  limit_waits(file, SO_RCVTIMEO, 20);
  const long result = readv(file, list_of(parts), count);
  limit_waits(file, SO_RCVTIMEO, 0);
  printf(" count %d", count);
  print_result(result);
  if (result >= 0) print_bytes(buffer, result);
}

static void do_sendmsg(int slot) {
  const int before = pipe_signals;
  static struct iovec parts[8];
  const int count = draw_count();
  const int file = file_of(slot);
  const long bytes = draw_bytes();
  const int flags = draw_send_flags();
  const int is_many = chance(30);
  struct sockaddr_in remote = draw_remote();
  struct msghdr message = {.msg_iov = list_of(parts), .msg_iovlen = (size_t)count};
  fill(bytes);
  printf("%d %s %s", slot, is_many ? "sendmmsg" : "sendmsg", flag_names(flags));
  if (chance(60)) {
    message.msg_name = pointer_to(&remote);
    message.msg_namelen = draw_length();
    print_asked(&remote, message.msg_name, message.msg_namelen);
  }
  shape_parts(parts, count < 0 || count > 8 ? 2 : count, bytes);
  limit_waits(file, SO_SNDTIMEO, 100);
  if (is_many) {
    struct mmsghdr messages[1] = {{.msg_hdr = message}};
    /* Not two: what the first one leads to may be there for the second. */
    print_sent(sendmmsg(file, messages, (unsigned)draw(2), flags), before);
    printf(" %u", messages[0].msg_len);
  } else {
    print_sent(sendmsg(file, pointer_to(&message), flags), before);
  }
  limit_waits(file, SO_SNDTIMEO, 0);
  printf(" count %d", count);
}

static void do_recvmsg(int slot) {
  static struct iovec parts[8];
  const int count = draw_count();
  const int file = file_of(slot);
  const int flags = ONE_OF(0, 0, MSG_PEEK, MSG_TRUNC, MSG_DONTWAIT, MSG_CMSG_CLOEXEC, MSG_WAITALL);
  struct sockaddr_storage peer = {0};
  struct msghdr message = {.msg_iov = list_of(parts), .msg_iovlen = (size_t)count};
  const socklen_t capacity = chance(80) ? sizeof peer : (socklen_t)ONE_OF(0, 2, 4, 16, 17);
  if (chance(70)) {
    message.msg_name = pointer_to(&peer);
    message.msg_namelen = capacity;
  }
  memset(buffer, 0xee, sizeof buffer);
  printf("%d recvmsg %s", slot, flag_names(flags));
  const long bytes = draw_bytes();
  shape_parts(parts, count < 0 || count > 8 ? 2 : count, bytes);
  limit_waits(file, SO_RCVTIMEO, 20);
  const long result = recvmsg(file, pointer_to(&message), flags);
  limit_waits(file, SO_RCVTIMEO, 0);
  printf(" count %d", count);
  print_result(result);
  if (result < 0) return;
  print_bytes(buffer, bytes < result ? bytes : result);
  printf(" flags %x control %zu", (unsigned)message.msg_flags, message.msg_controllen);
  if (message.msg_name == &peer && message.msg_namelen > 0)
    print_address(&peer, capacity, message.msg_namelen);
  if (message.msg_name == NULL || message.msg_namelen == 0) printf(" name %u", message.msg_namelen);
}
