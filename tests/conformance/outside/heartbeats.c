// A rank does something small again and again, sleeps between, and waits for nothing. Arguments: the path of
// a file, and what it does. Prints the virtual time that its sleeps have taken.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

static const char* path;

static void write_line(void) {
  printf("beat\n");
  fflush(stdout);
}
static void append(void) {
  FILE* const log = fopen(path, "a");
  fprintf(log, "beat\n");
  fclose(log);
}
static void replace(void) {
  char part[440];
  snprintf(part, sizeof part, "%s.part", path);
  FILE* const log = fopen(part, "w");
  fprintf(log, "beat\n");
  fclose(log);
  rename(part, path);
}
static void allocate(void) {
  enum { bytes = 1 << 24 };
  char* const memory = malloc(bytes);
  memset(memory, 1, bytes);
  free(memory);
}
static void print_date(void) {
  const time_t now = time(NULL);
  printf("%s", ctime(&now));
}
static void read_load(void) {
  double load[3];
  if (getloadavg(load, 3) != 3) exit(1);
}
static void read_size(void) {
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%ld", &pages) != 1) exit(1);
  fclose(file);
}
static void change_file(void) {
  close(open(path, O_CREAT | O_WRONLY, 0600));
  utime(path, NULL);
}
// Calls without a name of a file, and with one that nobody can read.
static void change_open_file(void) {
  const int file = open(path, O_CREAT | O_WRONLY, 0600);
  if (futimens(file, NULL) != 0) exit(1);
  close(file);
  const char* volatile nowhere = (const char*)-1;
  if (syscall(SYS_utimensat, AT_FDCWD, nowhere, NULL, 0) != -1 || errno != EFAULT) exit(1);
}
static void ask_about_itself(void) {
  if (syscall(SYS_getpriority, PRIO_PROCESS, 0) < 0 || syscall(SYS_getsid, getpid()) < 0) exit(1);
}

static const struct beat {
  const char* name;
  void (*does)(void);
} beats[] = {
    {"write", write_line},
    {"append", append},
    {"replace", replace},
    {"allocate", allocate},
    {"print the date", print_date},
    {"read the load", read_load},
    {"read its size", read_size},
    {"change a file", change_file},
    {"change an open file", change_open_file},
    {"ask about itself", ask_about_itself},
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) return 2;
  path = argv[1];
  const double began_s = MPI_Wtime();
  for (const struct beat* beat = beats; beat != beats + sizeof beats / sizeof *beats; ++beat) {
    if (strcmp(argv[2], beat->name) != 0) continue;
    for (int i = 0; i < 1000; ++i) {
      beat->does();
      sleep(1);
    }
  }
  printf("%.3f s\n", MPI_Wtime() - began_s);
  MPI_Finalize();
  return 0;
}
