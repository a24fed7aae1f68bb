// Calls on sockets with a time limit of their own end at it in virtual time. Prints the time of ten calls of
// each kind.
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static int ends[2];
static int listener;

static ssize_t by_read(void) {
  char byte;
  return read(ends[0], &byte, 1);
}
static ssize_t by_readv(void) {
  char byte;
  const struct iovec part = {.iov_base = &byte, .iov_len = 1};
  return readv(ends[0], &part, 1);
}
static ssize_t by_recv(void) {
  char byte;
  return recv(ends[0], &byte, 1, 0);
}
static ssize_t by_recvmsg(void) {
  char byte;
  struct iovec part = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  return recvmsg(ends[0], &message, 0);
}
static ssize_t by_accept(void) {
  return accept(listener, NULL, NULL);
}
static ssize_t by_write(void) {
  return write(ends[0], "", 1);
}
static ssize_t by_sendmsg(void) {
  struct iovec part = {.iov_base = "", .iov_len = 1};
  const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  return sendmsg(ends[0], &message, 0);
}

static void measure(const char* name, ssize_t (*call)(void)) {
  const double began_s = MPI_Wtime();
  for (int i = 0; i < 10; ++i) {
    if (call() != -1 || errno != EAGAIN) exit(3);
  }
  printf("%s %.3f s\n", name, MPI_Wtime() - began_s);
}

int main(int argc, char** argv) {
  const struct timeval limit = {.tv_usec = 100000};
  MPI_Init(&argc, &argv);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 2;
  listener = socket(AF_UNIX, SOCK_STREAM, 0);
  const struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (bind(listener, (const struct sockaddr*)&address, sizeof address.sun_family) != 0 ||
      listen(listener, 1) != 0)
    return 2;
  setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  measure("read", by_read);
  measure("readv", by_readv);
  measure("recv", by_recv);
  measure("recvmsg", by_recvmsg);
  measure("accept", by_accept);
  while (send(ends[0], "", 1, MSG_DONTWAIT) == 1) continue;
  measure("write", by_write);
  measure("sendmsg", by_sendmsg);
  MPI_Finalize();
  return 0;
}
