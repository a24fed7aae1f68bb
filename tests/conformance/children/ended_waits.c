/* Which waits a signal ends, beside a child: each line has the call, whether the handler has SA_RESTART, who
 * sends the signal, the result, the time in s, and how often the handler has run by then. The signal comes
 * after 1 s, or each 0.3 s ("ticks"), and the child ends the wait after 2 s. Arguments: the calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

struct Shared {
  sem_t semaphore;
  uint32_t word;
};

struct Case {
  const char* call;
  const char* how;
  const char* sender;
  int signal;
};

static volatile sig_atomic_t handled;
static struct Shared* shared;
static int files[2];
static pthread_t first_thread;

static void handle(int signal) {
  (void)signal;
  ++handled;
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_s(time_t s) {
  struct timespec left = {.tv_sec = s, .tv_nsec = 0};
  while (nanosleep(&left, &left) != 0) continue;
}

static bool is(const struct Case* one, const char* call) {
  return strcmp(one->call, call) == 0;
}

static void finish(const struct Case* one) {
  char bytes[65536];
  if (strncmp(one->call, "sem", 3) == 0) {
    sem_post(&shared->semaphore);
  } else if (strncmp(one->call, "futex", 5) == 0) {
    __atomic_store_n(&shared->word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
  } else if (is(one, "write")) {
    for (int i = 0; i < 2; ++i) {
      if (read(files[0], bytes, sizeof bytes) < 0) _exit(1);
    }
  } else if (write(files[1], "ab\n", 3) != 3) {
    _exit(1);
  }
}

/* As fgets() and others report it. */
static int found(FILE* stream, int length) {
  return length > 0 ? length : ferror(stream) ? -1 : 0;
}

static int wait_for(const struct Case* one) {
  char text[64];
  char* line = NULL;
  size_t size = 0;
  const struct timespec limit = {.tv_sec = 4, .tv_nsec = 0};
  if (is(one, "read")) return (int)read(files[0], text, sizeof text);
  if (is(one, "write")) {
    static char bytes[100000];
    return (int)write(files[1], bytes, sizeof bytes);
  }
  if (is(one, "sem_wait")) return sem_wait(&shared->semaphore);
  if (is(one, "sem_timedwait")) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 4;
    return sem_timedwait(&shared->semaphore, &until);
  }
  if (is(one, "futex")) return (int)syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, NULL, NULL, 0);
  if (is(one, "futex, limit")) return (int)syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, &limit, NULL, 0);
  if (is(one, "select")) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(files[0], &set);
    struct timeval left = {.tv_sec = 4, .tv_usec = 0};
    const int result = select(files[0] + 1, &set, NULL, NULL, &left);
    const int error = errno;
    printf("%.1f left, ", (double)left.tv_sec + (double)left.tv_usec * 1e-6);
    errno = error;
    return result;
  }
  FILE* stream = fdopen(files[0], "r");
  if (is(one, "fgets"))
    return found(stream, fgets(text, sizeof text, stream) != NULL ? (int)strlen(text) : 0);
  if (is(one, "fread")) return found(stream, (int)fread(text, 1, 3, stream));
  if (is(one, "fread, no buffer")) {
    setvbuf(stream, NULL, _IONBF, 0);
    return found(stream, (int)fread(text, 1, 3, stream));
  }
  if (is(one, "getline")) return (int)getline(&line, &size, stream);
  if (is(one, "getc")) return found(stream, getc(stream) == 'a');
  if (is(one, "fscanf")) return fscanf(stream, "%5s", text);
  wchar_t wide[9];
  if (is(one, "fgetws")) return found(stream, fgetws(wide, 9, stream) != NULL ? (int)wcslen(wide) : 0);
  abort();
}

static void* send_signal(void* argument) {
  const struct Case* one = argument;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  sleep_s(1);
  if (strcmp(one->sender, "thread") == 0) {
    kill(getpid(), one->signal);
  } else {
    pthread_kill(first_thread, one->signal);
  }
  return NULL;
}

static void run_child(const struct Case* one, pid_t parent) {
  close(files[is(one, "write") ? 1 : 0]);
  sleep_s(1);
  if (strcmp(one->sender, "child") == 0) kill(parent, one->signal);
  sleep_s(1);
  finish(one);
  sleep_s(1);
  _exit(0);
}

static void run(struct Case one) {
  const bool ticks = strcmp(one.sender, "ticks") == 0;
  one.signal = ticks || strcmp(one.sender, "timer") == 0 ? SIGALRM : SIGUSR1;
  handled = 0;
  if (pipe(files) != 0) abort();
  sem_init(&shared->semaphore, 1, 0);
  shared->word = 0;
  const struct sigaction action = {.sa_handler = handle,
                                   .sa_flags = strcmp(one.how, "again") == 0 ? SA_RESTART : 0};
  sigaction(one.signal, &action, NULL);
  fflush(stdout);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) run_child(&one, self);
  if (!is(&one, "write")) close(files[1]);
  const double begin_s = now_s();
  const struct itimerval once = {.it_value = {.tv_sec = 1}};
  const struct itimerval often = {.it_value = {.tv_usec = 300000}, .it_interval = {.tv_usec = 300000}};
  if (one.signal == SIGALRM) setitimer(ITIMER_REAL, ticks ? &often : &once, NULL);
  pthread_t thread = 0;
  const bool has_thread = strstr(one.sender, "thread") != NULL;
  if (has_thread) pthread_create(&thread, NULL, send_signal, &one);
  printf("%s %s %s: ", one.call, one.how, one.sender);
  errno = 0;
  const int result = wait_for(&one);
  const char* error = result < 0 ? strerrorname_np(errno) : "-";
  const double took_s = now_s() - begin_s;
  const struct itimerval never = {.it_value = {.tv_sec = 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%d %s %.3f %d\n", result, error, took_s, (int)handled);
  if (has_thread) pthread_join(thread, NULL);
  kill(child, SIGKILL);
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
  close(files[0]);
  if (is(&one, "write")) close(files[1]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  first_thread = pthread_self();
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const char* const hows[] = {"stop", "again"};
  const char* const senders[] = {"timer", "ticks", "child", "thread", "to a thread"};
  for (int i = 1; i < argc; ++i) {
    for (int j = 0; j < 10; ++j) run((struct Case){argv[i], hows[j % 2], senders[j / 2], 0});
  }
  MPI_Finalize();
  return 0;
}
