// Preloaded: writes to regular files below $QUOTA_FOLDER fail beyond $QUOTA_BYTES, as those of a user with a
// full quota.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t written;

static int is_over_quota(int file, size_t bytes) {
  const char* folder = getenv("QUOTA_FOLDER");
  char link[64];
  char path[PATH_MAX];
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof(path));
  if (length < (ssize_t)strlen(folder) || strncmp(path, folder, strlen(folder)) != 0) return 0;
  written += bytes;
  if (written <= strtoul(getenv("QUOTA_BYTES"), NULL, 10)) return 0;
  errno = EDQUOT;
  return 1;
}

ssize_t write(int file, const void* bytes, size_t count) {
  return is_over_quota(file, count) ? -1 : syscall(SYS_write, file, bytes, count);
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  return is_over_quota(file, count) ? -1 : syscall(SYS_pwrite64, file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void* bytes, size_t count, off_t offset) {
  return pwrite(file, bytes, count, offset);
}
