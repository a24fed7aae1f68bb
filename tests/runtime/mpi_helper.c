// Code of a library named as an MPI library is: the whole lives of two threads.
#include <poll.h>
#include <stddef.h>

__attribute__((visibility("default"))) void* apenet_test_helper(void* again) {
  do {
    poll(NULL, 0, 100);
  } while (again != NULL);
  return NULL;
}

__attribute__((visibility("default"))) void* apenet_test_spinning_helper(void* may_wait) {
  while (*(const volatile int*)may_wait == 0) continue;
  return apenet_test_helper(may_wait);
}
