// A library that leaves something behind when it is loaded: what LEAVES names. Appends a byte to LOADED each
// time.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int left_behind = 1;

static void* sleeps(void* nothing) {
  pause();
  return nothing;
}

__attribute__((constructor)) static void load(void) {
  const int file = open(getenv("LOADED"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || write(file, "x", 1) != 1 || close(file) != 0) abort();
  const char* leaves = getenv("LEAVES");
  if (strcmp(leaves, "words") == 0) fprintf(stderr, "loaded\n");
  if (strcmp(leaves, "buffered words") == 0) printf("buffered\n");
  if (strcmp(leaves, "an open file") == 0 && open("/dev/null", O_RDONLY) < 0) abort();
  if (strcmp(leaves, "shared memory") == 0 &&
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
    abort();
  if (strcmp(leaves, "an end") == 0 && getenv("APENET_RANK") == NULL) _exit(0);
  if (strcmp(leaves, "a thread") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeps, NULL) != 0) abort();
  }
  if (strcmp(leaves, "a timer of the process") == 0) {
    const struct itimerval later = {.it_value = {.tv_sec = 1000}};
    if (setitimer(ITIMER_REAL, &later, NULL) != 0) abort();
  }
  if (strcmp(leaves, "a timer") == 0) {
    timer_t timer;
    struct sigevent nothing = {.sigev_notify = SIGEV_NONE};
    if (timer_create(CLOCK_MONOTONIC, &nothing, &timer) != 0) abort();
  }
}
