// System calls that the shim neither replaces nor catches, so that they are the host's: by code that the
// program makes while it runs (docs/internals/direct-calls.md).
#pragma once

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef long (*host_call_fn)(long number, long first, long second, long third);

static inline long host_call(long number, long first, long second, long third) {
  // Every bit is inverted, and volatile keeps the compiler from undoing that: the program's own code holds no
  // such instruction.
#if defined(__x86_64__)
  // mov %rdi, %rax; mov %rsi, %rdi; mov %rdx, %rsi; mov %rcx, %rdx; syscall; ret
  static const volatile unsigned char inverted[] = {0xb7, 0x76, 0x07, 0xb7, 0x76, 0x08, 0xb7, 0x76,
                                                    0x29, 0xb7, 0x76, 0x35, 0xf0, 0xfa, 0x3c};
#elif defined(__aarch64__)
  // mov x8, x0; mov x0, x1; mov x1, x2; mov x2, x3; svc #0; ret
  static const volatile unsigned char inverted[] = {0x17, 0xfc, 0xff, 0x55, 0x1f, 0xfc, 0xfe, 0x55,
                                                    0x1e, 0xfc, 0xfd, 0x55, 0x1d, 0xfc, 0xfc, 0x55,
                                                    0xfe, 0xff, 0xff, 0x2b, 0x3f, 0xfc, 0xa0, 0x29};
#endif
  static void* made;
  if (made == NULL) {
    void* const page =
        mmap(NULL, sizeof inverted, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) abort();
    for (size_t i = 0; i < sizeof inverted; ++i) ((unsigned char*)page)[i] = (unsigned char)~inverted[i];
    __builtin___clear_cache((char*)page, (char*)page + sizeof inverted);
    made = page;
  }
  host_call_fn call;
  memcpy(&call, &made, sizeof call);
  return call(number, first, second, third);
}

static inline double host_seconds(clockid_t clock) {
  struct timespec now;
  host_call(SYS_clock_gettime, clock, (long)&now, 0);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
