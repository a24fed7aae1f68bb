// A rank and its child: one waits for signals that it has blocked, and the other one sends one every 10 ms.
// Arguments: who waits, and how the signals are sent (or "exits": the child's children end).
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { count = 3 };

static const char* const calls[] = {"poll",         "ppoll",   "select",      "epoll_wait", "read",
                                    "sigtimedwait", "sigwait", "sigwaitinfo", "timer"};

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void sleep_ms(long ms) {
  const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

// Returns the signal. limit_ms < 0: none.
static int wait_for(const char* call, const sigset_t* set, int limit_ms) {
  const struct timespec limit = {.tv_sec = limit_ms / 1000, .tv_nsec = limit_ms % 1000 * 1000000};
  int signal = -1;
  if (strcmp(call, "sigtimedwait") == 0) return sigtimedwait(set, NULL, limit_ms < 0 ? NULL : &limit);
  if (strcmp(call, "sigwaitinfo") == 0) return sigwaitinfo(set, NULL);
  if (strcmp(call, "sigwait") == 0) return sigwait(set, &signal) == 0 ? signal : -1;
  const int file = signalfd(-1, set, SFD_CLOEXEC);
  struct pollfd one = {.fd = file, .events = POLLIN};
  if (strcmp(call, "poll") == 0) {
    poll(&one, 1, limit_ms);
  } else if (strcmp(call, "ppoll") == 0 || strcmp(call, "timer") == 0) {
    ppoll(&one, 1, limit_ms < 0 ? NULL : &limit, NULL);
  } else if (strcmp(call, "select") == 0) {
    fd_set files;
    FD_ZERO(&files);
    FD_SET(file, &files);
    struct timeval left = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
    select(file + 1, &files, NULL, NULL, limit_ms < 0 ? NULL : &left);
  } else if (strcmp(call, "epoll_wait") == 0) {
    const int set_of_files = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set_of_files, EPOLL_CTL_ADD, file, &event);
    epoll_wait(set_of_files, &event, 1, limit_ms);
    close(set_of_files);
  }
  struct signalfd_siginfo info = {0};
  one.revents = 0;
  if (strcmp(call, "read") == 0 || poll(&one, 1, 0) == 1)
    signal = read(file, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : -1;
  close(file);
  return signal;
}

static void show_waits(const char* call, const sigset_t* set, int limit_ms, double began_ms) {
  printf("%s, %d ms:", call, limit_ms);
  for (int i = 0; i < count; ++i) {
    const int signal = wait_for(call, set, limit_ms);
    printf(" %d at %.1f", signal, now_ms() - began_ms);
  }
  printf("\n");
  fflush(stdout);
}

static void send_all(pid_t to, const char* way) {
  for (int i = 0; i < count; ++i) {
    sleep_ms(10);
    if (strcmp(way, "sigqueue") == 0) {
      sigqueue(to, SIGURG, (union sigval){.sival_int = i});
    } else {
      kill(to, SIGURG);
    }
  }
}

static void run(const char* waiter, const char* way, const char* call, int limit_ms) {
  sigset_t set;
  sigemptyset(&set);
  const int exits = strcmp(way, "exits") == 0;
  const int has_timer = strcmp(call, "timer") == 0;
  sigaddset(&set, exits ? SIGCHLD : SIGURG);
  if (has_timer) sigaddset(&set, SIGALRM);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &set, &before);
  const double began_ms = now_ms();
  if (exits) {
    for (int i = 1; i <= count; ++i) {
      if (fork() == 0) {
        sleep_ms(10L * i);
        _exit(0);
      }
    }
    show_waits(call, &set, limit_ms, began_ms);
    while (wait(NULL) > 0) continue;
  } else {
    const pid_t rank = getpid();
    const pid_t child = fork();
    if ((child == 0) == (strcmp(waiter, "child") == 0)) {
      const struct itimerval every = {.it_interval = {.tv_usec = 15000}, .it_value = {.tv_usec = 15000}};
      if (has_timer) setitimer(ITIMER_REAL, &every, NULL);
      show_waits(call, &set, limit_ms, began_ms);
      const struct itimerval none = {0};
      setitimer(ITIMER_REAL, &none, NULL);
    } else {
      send_all(child == 0 ? rank : child, way);
    }
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
  }
  struct timespec at_once = {0};
  while (sigtimedwait(&set, NULL, &at_once) > 0) continue;
  sigprocmask(SIG_SETMASK, &before, NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    if (strcmp(argv[2], "exits") == 0 && strcmp(calls[i], "timer") == 0) continue;
    run(argv[1], argv[2], calls[i], 1000);
    run(argv[1], argv[2], calls[i], -1);
  }
  return 0;
}
