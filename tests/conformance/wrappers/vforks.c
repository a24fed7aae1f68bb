// Makes a child by vfork that starts no program, and waits for it.
#define _DEFAULT_SOURCE
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  return waitpid(child, NULL, 0) == child ? 0 : 1;
}
