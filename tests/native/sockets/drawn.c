/* Random numbers of the system by each of its functions. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library has them from 2.36 on. */
__attribute__((weak)) uint32_t arc4random(void);
__attribute__((weak)) uint32_t arc4random_uniform(uint32_t bound);

int main(void) {
  uint64_t words[3] = {0};
  if (getrandom(&words[0], sizeof words[0], 0) != sizeof words[0]) return 1;
  if (getentropy(&words[1], sizeof words[1]) != 0) return 2;
  if (syscall(SYS_getrandom, &words[2], sizeof words[2], 0) != sizeof words[2]) return 3;
  uint64_t given[2]; /* the program's own from the kernel */
  memcpy(given, (const void*)getauxval(AT_RANDOM), sizeof given);
  printf("%016llx\n%016llx\n", (unsigned long long)given[0], (unsigned long long)given[1]);
  for (int i = 0; i < 3; ++i) printf("%016llx\n", (unsigned long long)words[i]);
  if (arc4random != NULL && arc4random_uniform != NULL) {
    printf("%u\n", arc4random());
    for (uint32_t bound = 1; bound < 100; ++bound) {
      if (arc4random_uniform(bound) >= bound) return 4;
    }
  }
  return 0;
}
