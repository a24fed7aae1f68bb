// Child processes that end with the test that has started them, also when that is killed.
#pragma once

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace apenet::test {

// As fork(). The child ends with the thread that has forked it.
inline pid_t fork_with_test() {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has ended before
  return 0;
}

}  // namespace apenet::test
