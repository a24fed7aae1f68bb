// Threads whose sleeps end at the same times, and that print without a lock. The argument says by which call.
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../c/check.h"

enum { thread_count = 4, lines_of_thread = 30, longest_line = 100 };

static struct World world;
static const char* how;

// Takes another time in the host, whatever the virtual time.
static void compute(unsigned steps) {
  volatile unsigned sum = 0;
  for (unsigned i = 0; i < steps; ++i) sum += i;
}

static void print(int thread, const char* line) {
  if (strcmp(how, "printf") == 0) printf("%s", line);
  if (strcmp(how, "write") == 0) CHECK(write(1, line, strlen(line)) == (ssize_t)strlen(line));
  if (strcmp(how, "mixed") == 0) {
    if (thread % 2 == 0) {
      fputs(line, stdout);
    } else {
      fwrite(line, 1, strlen(line), stdout);
      fflush(stdout);
    }
  }
  if (strcmp(how, "held") == 0) {  // the lines of a thread stay together, although it sleeps between them
    flockfile(stdout);
    fputs(line, stdout);
    usleep(3);
    putchar('+');
    puts(line);
    funlockfile(stdout);
  }
}

static void* work(void* argument) {
  const int thread = *(const int*)argument;
  for (int i = 0; i < lines_of_thread; ++i) {
    char line[longest_line];
    usleep(10);
    compute((unsigned)getpid() * (unsigned)(thread + 1) % 97 * 2000);
    snprintf(line, sizeof line, "rank %d, thread %d: %d\n", world.rank, thread, i);
    print(thread, line);
  }
  return NULL;
}

int main(int argc, char** argv) {
  how = argv[1];
  world = begin_threaded_program(&argc, &argv);
  pthread_t threads[thread_count];
  int numbers[thread_count];
  for (int i = 0; i < thread_count; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
  }
  for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
  return end_program(world);
}
