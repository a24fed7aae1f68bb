// A launcher in C that starts a program by vfork with an environment of its own, and returns its status.
#define _GNU_SOURCE
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** arguments) {
  char* variables[] = {"PATH=/usr/bin:/bin", "LD_PRELOAD=libm.so.6", NULL};
  (void)count;
  const pid_t process = vfork();
  if (process == 0) {
    execvpe(arguments[1], arguments + 1, variables);
    _exit(127);
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
