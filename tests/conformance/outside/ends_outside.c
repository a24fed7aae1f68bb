// A rank asks whether a process outside the run is there by a call that fails once it has ended, sleeps, asks
// again, and gives up after a time limit. Arguments: the call, the process's id, a file that the rank makes
// when it begins. Prints whether the process has ended.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const double limit_s = 10;  // virtual, and far more than the process lives

static int is_there(const char* call, pid_t process) {
  struct sched_param parameters;
  if (strcmp(call, "getpgid") == 0) return getpgid(process) >= 0;
  if (strcmp(call, "getsid") == 0) return getsid(process) >= 0;
  if (strcmp(call, "sched_getscheduler") == 0) return sched_getscheduler(process) >= 0;
  if (strcmp(call, "sched_getparam") == 0) return sched_getparam(process, &parameters) == 0;
  if (strcmp(call, "getpriority") != 0) exit(2);
  errno = 0;
  return getpriority(PRIO_PROCESS, (id_t)process) != -1 || errno == 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) return 2;
  const pid_t process = atoi(argv[2]);
  close(open(argv[3], O_CREAT | O_WRONLY, 0600));
  const double end_s = MPI_Wtime() + limit_s;
  while (is_there(argv[1], process) && MPI_Wtime() < end_s) usleep(2000);
  puts(MPI_Wtime() < end_s ? "ended" : "gave up");
  MPI_Finalize();
  return 0;
}
