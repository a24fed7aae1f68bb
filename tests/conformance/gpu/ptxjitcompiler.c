// The compiler for kernels that a CUDA driver loads when it first needs it: it reads clocks and sleeps, for a
// time that the host decides, and leaves memory in the program's heap.
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

void compile_kernels(void) {
  unsigned char random = 0;
  if (getrandom(&random, 1, 0) != 1) abort();
  struct timespec now;
  for (int i = 0; i < 20 + random; ++i) clock_gettime(CLOCK_MONOTONIC, &now);
  usleep(random);
  for (int i = 0; i < random; ++i) {
    char* volatile kept = malloc((size_t)(17 * random + i));
    if (kept == NULL) abort();
  }
}
