/* The cycle counter over a sleep of 1 ms, once virtual time has begun: with -DSOCKETS by the program's start,
 * otherwise by apelib. */
#include <stdio.h>
#include <unistd.h>
#include <x86intrin.h>
#ifndef SOCKETS
#include <apelib.h>
#endif

int main(void) {
#ifndef SOCKETS
  if (ape_init() != 0) return 1;
#endif
  const unsigned long long before = __rdtsc();
  usleep(1000);
  unsigned processor = 1;
  const unsigned long long after = __rdtscp(&processor);
  printf("%llu cycles, processor %u\n", (after - before) / 1000, processor);
#ifndef SOCKETS
  ape_finalize();
#endif
  return 0;
}
