// A launcher that is linked statically: drops keep|shim|all PROGRAM ARGUMENT... removes nothing, the shim, or
// the whole environment.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

int main(int count, char** arguments) {
  if (count < 3) return 2;
  if (strcmp(arguments[1], "shim") == 0) unsetenv("LD_PRELOAD");
  if (strcmp(arguments[1], "all") == 0) clearenv();
  execvp(arguments[2], arguments + 2);
  perror(arguments[2]);
  return 1;
}
