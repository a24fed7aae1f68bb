// A launcher that makes the system call execve itself: raw keep|all PROGRAM
// ARGUMENT... removes nothing from the environment, or all of it. With -DOF_GO it looks like one that Go's
// linker made.
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

extern char** environ;

#ifdef OF_GO
__attribute__((section(".go.buildinfo"), used)) static const char version[] = "go0";
#endif

static long call(long number, const void* first, const void* second, const void* third) {
  long result = number;
  __asm__ volatile("syscall" : "+a"(result) : "D"(first), "S"(second), "d"(third) : "rcx", "r11", "memory");
  return result;
}

int main(int count, char** arguments) {
  static char* nothing[] = {NULL};
  if (count < 3) return 2;
  char** variables = strcmp(arguments[1], "all") == 0 ? nothing : environ;
  const long error = call(SYS_execve, arguments[2], arguments + 2, variables);
  fprintf(stderr, "%s: error %ld\n", arguments[2], -error);
  return 1;
}
