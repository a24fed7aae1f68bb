// Whether the process has had one thread only, so far.
#pragma once

#include <features.h>

#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#else
// glibc before 2.32 has no such name; a library that was linked for it finds the name in later ones.
extern "C" char __libc_single_threaded [[gnu::weak]];  // NOLINT(bugprone-reserved-identifier)
#endif

namespace apenet::ipc {

inline bool is_single_threaded() {
#if __GLIBC_PREREQ(2, 32)
  return __libc_single_threaded != 0;
#else
  if (&__libc_single_threaded != nullptr) return __libc_single_threaded != 0;
#if defined(__x86_64__)
  // Until then the control block of each thread had the flag (glibc, sysdeps/x86_64/nptl/tls.h, tcbhead_t).
  int has_several = 0;
  __asm__ volatile("movl %%fs:0x18, %0" : "=r"(has_several));
  return has_several == 0;
#else
  return false;
#endif
#endif
}

}  // namespace apenet::ipc
