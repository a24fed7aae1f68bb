// A program that reads the processor's cycle counter, with `--trap-tsc` if the argument is "trapped", and
// uses signals and processes meanwhile.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#ifdef __x86_64__
static uint64_t ticks(void) {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

static uint64_t ticks_and_processor(void) {
  uint32_t low = 0;
  uint32_t high = 0;
  uint32_t processor = 7;
  __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor));
  CHECK(processor == 0);
  return (uint64_t)high << 32 | low;
}
#else
static uint64_t ticks(void) {
  return 0;
}
static uint64_t ticks_and_processor(void) {
  return 0;
}
#endif

static sigjmp_buf after_fault;
static volatile uint64_t seen;

static void on_fault(int number, siginfo_t* info, void* context) {
  (void)context;
  if (number == SIGSEGV && info->si_addr == (void*)64) siglongjmp(after_fault, 1);
  _exit(7);
}

static void on_user_signal(int number) {
  (void)number;
  seen = ticks();
}

static void* read_blocked(void* argument) {
  (void)argument;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  seen = ticks();
  return NULL;
}

static void check_counter(void) {
  const struct timespec second = {1, 0};
  const uint64_t before = ticks();
  nanosleep(&second, NULL);
  const uint64_t between = ticks() - before;
  CHECK(between >= 1000000000 && between < 1001000000);
  CHECK(ticks_and_processor() >= before + between);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  CHECK(ticks() >= (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}

static void check_signals(void) {
  const uint64_t before = ticks();
  struct sigaction action = {.sa_flags = SA_SIGINFO};
  struct sigaction found;
  action.sa_sigaction = on_fault;
  sigfillset(&action.sa_mask);
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  for (int round = 0; round < 2; ++round) {
    if (sigsetjmp(after_fault, 1) == 0) {
      *(volatile int*)64 = 1;
      CHECK(0);
    }
    CHECK(ticks() > before);
  }
  CHECK(sigaction(SIGSEGV, NULL, &found) == 0 && found.sa_sigaction == on_fault);
  CHECK((void*)signal(SIGSEGV, SIG_IGN) == (void*)on_fault);
  raise(SIGSEGV);
  CHECK(signal(SIGSEGV, SIG_DFL) == SIG_IGN);
  action.sa_flags = 0;
  action.sa_handler = on_user_signal;
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  CHECK(seen > before);
}

static void check_processes(void) {
  pthread_t thread;
  seen = 0;
  pthread_create(&thread, NULL, read_blocked, NULL);
  pthread_join(thread, NULL);
  CHECK(seen > 0);
  CHECK(system("exit 3") == 3 << 8);
  int status = 1;
  const pid_t child = fork();
  if (child == 0) {
    ticks();
    execl("/bin/sh", "sh", "-c", "exit 4", (char*)NULL);
    _exit(5);
  }
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
}

int main(int argc, char** argv) {
  const struct World world = begin_program(&argc, &argv);
  if (argc > 1) {
    check_counter();
    check_signals();
    check_processes();
    if (world.rank == 0) printf("%llu\n", (unsigned long long)ticks());
  }
  return end_program(world);
}
