// libapenet-launcher.so: preloaded into Open MPI's launcher. The launcher makes the name of the job, and the
// names of its folders, from its process id and the host's name, and ranks send and keep these names: a run
// must not depend on them.
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const char host_name[] = "apenet";  // launcher_host_name of mpi_world.hpp

// No process has this id (PID_MAX_LIMIT of Linux is 4,194,304). Each launcher has a folder of its own for its
// files.
EXPORT pid_t getpid(void) {
  return 9999999;
}

EXPORT int gethostname(char* name, size_t size) {
  if (size < sizeof host_name) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(name, host_name, sizeof host_name);
  return 0;
}

EXPORT int uname(struct utsname* names) {
  const long result = syscall(SYS_uname, names);
  if (result == 0) memcpy(names->nodename, host_name, sizeof host_name);
  return (int)result;
}
