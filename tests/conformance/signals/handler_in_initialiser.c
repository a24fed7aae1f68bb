// A library whose initialiser waits for a thread that sets a handler. Loaded by dlopen(), whose lock it then
// has.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static void ignore(int number) {
  (void)number;
}

static void* set_handler(void* unused) {
  signal(SIGUSR1, ignore);
  return unused;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, set_handler, NULL) != 0) return;
  pthread_join(thread, NULL);
  puts("initialised");
}
