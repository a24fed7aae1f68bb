/* A library with a function pthread_create() of its own, as jemalloc has it: it starts a housekeeping thread
 * by the function behind its own, which it looks up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static Create behind(void) {
  return (Create)dlsym(RTLD_NEXT, "pthread_create");
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) {
  return behind()(thread, attributes, routine, argument);
}

static void* keep_house(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  for (;;) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    pthread_cond_timedwait(&condition, &mutex, &until);
  }
  return NULL;
}

void begin_housekeeping(void) {
  pthread_t thread;
  behind()(&thread, NULL, keep_house, NULL);
}

void take_lock(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}
