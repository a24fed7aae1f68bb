// select() and pselect() with sets that are no longer than the files that count, at the end of mapped memory.
// The limit passes in virtual time.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long)(now.tv_sec % 1000 * 1000 + now.tv_nsec / 1000000);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* const pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED && munmap(pages + page, page) == 0);
  unsigned long* const word = (unsigned long*)(void*)(pages + page - sizeof *word);
  fd_set* const files = (fd_set*)(void*)word;
  int ends[2];
  CHECK(pipe(ends) == 0 && ends[0] < 64);
  const unsigned long bit = 1UL << (unsigned)ends[0];
  for (int i = 0; i < 4; ++i) {
    const long began_ms = now_ms();
    struct timeval limit = {.tv_sec = 100};
    const struct timespec same_limit = {.tv_sec = 100};
    *word = bit;
    const int found = i % 2 == 0 ? select(ends[0] + 1, files, NULL, NULL, &limit)
                                 : pselect(ends[0] + 1, files, NULL, NULL, &same_limit, NULL);
    CHECK(found == (i < 2 ? 0 : 1));
    CHECK(*word == (i < 2 ? 0 : bit));
    CHECK(now_ms() - began_ms == (i < 2 ? 100000 : 0));
    if (i == 1) CHECK(write(ends[1], "", 1) == 1);
  }
  // More files than a set has room for: the host looks at those that a process can have.
  fd_set usual;
  FD_ZERO(&usual);
  FD_SET(ends[0], &usual);
  CHECK(select(1 << 20, &usual, NULL, NULL, NULL) == 1 && FD_ISSET(ends[0], &usual));
  return end_program(world);
}
