// A rank checks again and again, without a sleep, until something outside has changed. Arguments: what; a
// file.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../c/host_call.h"

static const char* path;
static pid_t child;
static int fifo;

static int has_ended(void) {
  return waitpid(child, NULL, WNOHANG) == child;
}
static int is_there(void) {
  return access(path, F_OK) == 0;
}
static int is_gone(void) {
  return access(path, F_OK) != 0;
}
static int is_taken(void) {
  return unlink(path) == 0;
}
static int is_made(void) {
  return close(open(path, O_CREAT | O_EXCL | O_WRONLY, 0600)) == 0;
}
static int is_listed(void) {
  char folder[500];
  struct dirent** names = NULL;
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  const int found = scandir(folder, &names, NULL, NULL);
  int has_file = 0;
  for (int i = 0; i < found; ++i) {
    has_file += strcmp(names[i]->d_name, strrchr(path, '/') + 1) == 0;
    free(names[i]);
  }
  free(names);
  return has_file;
}
static int has_byte(void) {
  char byte;
  return read(fifo, &byte, 1) == 1;
}

// Past the shim, so that what the process does belongs to the host.
static void work_later(const char* what) {
  const struct timespec while_ = {.tv_nsec = 20000000};
  const int makes = strcmp(what, "there") == 0 || strcmp(what, "listed") == 0,
            links = strcmp(what, "taken") == 0,
            removes = strcmp(what, "gone") == 0 || strcmp(what, "made") == 0,
            writes = strcmp(what, "byte") == 0;
  child = (pid_t)host_call(SYS_clone, SIGCHLD, 0, 0);
  if (child != 0) return;
  host_call(SYS_nanosleep, (long)&while_, 0, 0);
  if (makes) host_call(SYS_mkdirat, AT_FDCWD, (long)path, 0700);
  if (links) host_call(SYS_symlinkat, (long)"target", AT_FDCWD, (long)path);
  if (removes) host_call(SYS_unlinkat, AT_FDCWD, (long)path, 0);
  if (writes) host_call(SYS_write, fifo, (long)path, 1);
  host_call(SYS_exit_group, 0, 0, 0);
}

int main(int argc, char** argv) {
  int rank, flag;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3) return 2;
  const char* what = argv[1];
  path = argv[2];
  if (strcmp(what, "own") ==
      0) {  // the rank, its children and another rank make what it checks for: nothing is the host's
    if (rank == 0) {
      char command[500];
      if (is_there() || mkdir(path, 0700) != 0 || !is_there() || rmdir(path) != 0 || is_there()) return 3;
      snprintf(command, sizeof command, "touch %s", path);
      if (system(command) != 0 || !is_there() || unlink(path) != 0) return 4;
    }
    const int was_there = rank == 1 && is_there();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) close(open(path, O_CREAT | O_WRONLY, 0600));
    MPI_Barrier(MPI_COMM_WORLD);
    if (was_there || !is_there()) return 5;
  } else if (rank == 0) {
    int (*has_come)(void) = has_ended;
    if (strcmp(what, "there") == 0) has_come = is_there;
    if (strcmp(what, "gone") == 0) has_come = is_gone;
    if (strcmp(what, "taken") == 0) has_come = is_taken;
    if (strcmp(what, "made") == 0) has_come = is_made;
    if (strcmp(what, "listed") == 0) has_come = is_listed;
    if (strcmp(what, "byte") == 0) has_come = has_byte;
    if (has_come == has_byte) {
      if (mkfifo(path, 0600) != 0) return 6;
      fifo = open(path, O_RDWR | O_NONBLOCK);
    }
    if (strcmp(what, "gone") == 0 || strcmp(what, "made") == 0) close(open(path, O_CREAT | O_WRONLY, 0600));
    work_later(what);
    while (!has_come()) MPI_Iprobe(1, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
