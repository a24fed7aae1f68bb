// A child with a timer of 10 ms is stopped from 25 to 55 ms. Prints the time of each end of the timer that it
// hears of, in ms, and how many ends that stands for.
//   stopped_timer itimer|timer|file
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double began_s;
static timer_t timer;
static volatile int ends;

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (now.tv_sec + 1e-9 * now.tv_nsec - began_s);
}

static void hear(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  ends = 1 + (info->si_code == SI_TIMER ? timer_getoverrun(timer) : 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  began_s += 1e-3 * now_ms();
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction action = {.sa_sigaction = hear, .sa_flags = SA_SIGINFO};
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval each = {{0, 10000}, {0, 10000}};
    const struct itimerspec same = {{0, 10000000}, {0, 10000000}};
    const int file = timerfd_create(CLOCK_MONOTONIC, 0);
    if (strcmp(argv[1], "itimer") == 0) setitimer(ITIMER_REAL, &each, NULL);
    if (strcmp(argv[1], "file") == 0) timerfd_settime(file, 0, &same, NULL);
    if (strcmp(argv[1], "timer") == 0) {
      timer_create(CLOCK_MONOTONIC, NULL, &timer);
      timer_settime(timer, 0, &same, NULL);
    }
    for (int i = 0; i < 5; ++i) {
      uint64_t read_ends = 0;
      if (strcmp(argv[1], "file") != 0) {
        pause();
        read_ends = (uint64_t)ends;
      } else if (read(file, &read_ends, sizeof read_ends) != sizeof read_ends) {
        return 1;
      }
      printf("%.1f %d\n", now_ms(), (int)read_ends);
    }
    fflush(stdout);
    _exit(0);
  }
  usleep(25000);
  kill(child, SIGSTOP);
  usleep(30000);
  kill(child, SIGCONT);
  waitpid(child, NULL, 0);
  MPI_Finalize();
  return 0;
}
