// Calls on the end of a socket pair that has a time limit, which do not wait: they answer at once, as on
// Linux. Prints the time that they have taken.
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

static void expect(const char* name, ssize_t result, int error) {
  if (error == 0 ? result == 0 : result == -1 && errno == error) return;
  printf("%s: %zd, errno %d\n", name, result, errno);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ends[2];
  const struct timeval limit = {.tv_usec = 100000};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 2;
  if (setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) return 2;
  char byte = 0;
  const struct iovec empty = {.iov_base = &byte, .iov_len = 0};
  const struct iovec negative = {.iov_base = &byte, .iov_len = SIZE_MAX};
  void* volatile nowhere = (void*)8;  // the compiler does not follow it
  const double began_s = MPI_Wtime();
  expect("accept", accept(ends[0], NULL, NULL), EINVAL);
  expect("read of nothing", read(ends[0], &byte, 0), 0);
  expect("readv of nothing", readv(ends[0], &empty, 1), 0);
  expect("readv without parts", readv(ends[0], &empty, 0), 0);
  expect("readv of less than nothing", readv(ends[0], &negative, 1), EINVAL);
  expect("readv to nowhere", readv(ends[0], nowhere, 1), EFAULT);
  expect("recvmsg to nowhere", recvmsg(ends[0], nowhere, 0), EFAULT);
  expect("recv out of band", recv(ends[0], &byte, 1, MSG_OOB), EINVAL);
  printf("%.3f s\n", MPI_Wtime() - began_s);
  MPI_Finalize();
  return 0;
}
