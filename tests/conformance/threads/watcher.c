// A library that watches memory, as libfabric does: the C library's allocator calls it, so how often it takes
// its locks is the host's choice.
#include <pthread.h>

void WATCH(int times);

void WATCH(int times) {
  static pthread_rwlock_t monitors = PTHREAD_RWLOCK_INITIALIZER;
  static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
  for (int i = 0; i < times; ++i) {
    pthread_rwlock_rdlock(&monitors);
    pthread_mutex_lock(&cache);
    pthread_mutex_unlock(&cache);
    pthread_rwlock_unlock(&monitors);
  }
}
