// A launcher that makes its system calls itself: raw_forks FORK WAIT PROGRAM ARGUMENT... starts the program
// without any variable. FORK, WAIT: by the C library (c) or by a system call (raw). WAIT may be `none`: then
// the program becomes an orphan.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long call(long number, long first, const void* second, const void* third, const void* fourth) {
  register const void* r10 __asm__("r10") = fourth;
  long result = number;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(first), "S"(second), "d"(third), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}

int main(int count, char** arguments) {
  static char* nothing[] = {NULL};
  if (count < 4) return 2;
  const int raw_fork = strcmp(arguments[1], "raw") == 0;
  const long child = raw_fork ? call(SYS_fork, 0, NULL, NULL, NULL) : fork();
  if (child == 0) {
    call(SYS_execve, (long)arguments[3], arguments + 3, nothing, NULL);
    call(SYS_exit_group, 1, NULL, NULL, NULL);
  }
  int status = 0;
  if (strcmp(arguments[2], "c") == 0) waitpid((pid_t)child, &status, 0);
  if (strcmp(arguments[2], "raw") == 0) call(SYS_wait4, child, &status, NULL, NULL);
  return WEXITSTATUS(status);
}
