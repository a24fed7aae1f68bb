// Each rank prints in what state it finds itself: open files, variables, signals, process group, memory. Then
// all ranks exchange a message, so that the run has times.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char** environ;
extern int left_behind;

static void print_files(int rank) {
  for (int fd = 0; fd < 1024; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags >= 0) printf("%d: file %d%s\n", rank, fd, (flags & FD_CLOEXEC) != 0 ? ", closed on exec" : "");
  }
}

static void print_variables(int rank, char** from_main) {
  const char* own[] = {"APENET_RANK", "PMI_RANK", "PMI_SIZE", "LEAVES", "LOADED", "APENET_RANK_PLAN"};
  for (int i = 0; i < (int)(sizeof own / sizeof own[0]); ++i) {
    const char* value = getenv(own[i]);
    printf("%d: %s=%s\n", rank, own[i], value == NULL || i == 3 || i == 4 ? "" : value);
  }
  int count = 0;
  while (environ[count] != NULL) ++count;
  printf("%d: %d variables%s\n", rank, count, from_main == environ ? "" : ", others in main");
}

// As tools see it from outside.
static void print_environment_of_system(int rank) {
  char text[65536];
  FILE* file = fopen("/proc/self/environ", "r");
  const size_t bytes = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
  text[bytes] = '\0';
  for (size_t at = 0; at < bytes; at += strlen(text + at) + 1) {
    if (strncmp(text + at, "APENET_RANK", 11) == 0 || strncmp(text + at, "PMI_", 4) == 0)
      printf("%d: the system says %.9s, %s\n", rank, text + at,
             strncmp(text + at, "PMI_FD", 6) == 0 ? "" : text + at);
  }
  if (file != NULL) fclose(file);
}

int main(int count, char** arguments, char** variables) {
  const char* text = getenv("APENET_RANK");
  const int number = text == NULL ? -1 : atoi(text);
  // What has been allocated and freed before main() decides where these lie.
  enum { sizes = 16 };
  void* memory[sizes];
  for (int i = 0; i < sizes; ++i) memory[i] = malloc((size_t)24 << (i % 8 * 2 + i / 8));
  printf("%d: %d arguments, %s\n", number, count, arguments[count - 1]);
  print_files(number);
  print_variables(number, variables);
  print_environment_of_system(number);
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, NULL, &blocked);
  struct sigaction pipe_action;
  sigaction(SIGPIPE, NULL, &pipe_action);
  printf("%d: leads its group: %d, its parent leads another: %d\n", number, getpgid(0) == getpid(),
         getpgid(getppid()) == getppid());
  printf("%d: SIGPIPE as by default: %d, SIGINT blocked: %d\n", number, pipe_action.sa_handler == SIG_DFL,
         sigismember(&blocked, SIGINT));
  int of_parent = 0;
  prctl(PR_GET_PDEATHSIG, &of_parent, 0, 0, 0);
  printf("%d: its parent's end sends it signal %d\n", number, of_parent);
  // Within a page: the system may load the program anywhere.
  for (int i = 0; i < sizes; ++i) printf("%d: memory at %#lx\n", number, (unsigned long)memory[i] & 4095);
  MPI_Init(&count, &arguments);
  int rank = 0;
  int sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d: sum %d at %.9f, %d\n", rank, sum, MPI_Wtime(), left_behind);
  MPI_Finalize();
  for (int i = 0; i < sizes; ++i) free(memory[i]);
  return 0;
}
