// A rank waits for something outside the simulation: it polls, waits a moment, polls again, and gives up
// after a time limit. Arguments: a folder for files; the things to wait for and the ways to wait, each
// separated by commas, or "all". Prints a line for each case that goes wrong, and the number of cases.
//
// A case is right if the thing comes before the limit, after no more polls than the real time that it took
// has room for, or the virtual time of the process that makes it.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mpi.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "../c/host_call.h"

enum { moment_ms = 2, thing_ms = 20, most_words = 32 };
static const double limit_s = 100;  // virtual, and far more than any thing takes

static const struct timespec moment = {.tv_nsec = moment_ms * 1000000};

static void compute(void) {
  const double end_s = host_seconds(CLOCK_THREAD_CPUTIME_ID) + thing_ms * 1e-3;
  while (host_seconds(CLOCK_THREAD_CPUTIME_ID) < end_s) continue;
}

// ---- the things ----

struct shared {
  atomic_int ready;
  atomic_int daemon;
  sem_t semaphore;
};
static struct shared* shared;
static char path[400];
static pid_t process;
static int descriptor = -1;
static struct sockaddr_in address;

// Runs work() in a child, or in a process that is no child.
static void start(void (*work)(void), int is_child) {
  process = fork();
  if (process == 0) {
    if (!is_child) {
      setsid();
      const pid_t daemon = fork();
      if (daemon != 0) {
        shared->daemon = daemon;
        _exit(0);
      }
    }
    work();
    _exit(0);
  }
  if (is_child) return;
  waitpid(process, NULL, 0);
  process = shared->daemon;
}

static void in_a_while(void) {
  struct timespec while_ = {.tv_nsec = thing_ms * 1000000};
  nanosleep(&while_, NULL);
}
static void makes_file(void) {
  in_a_while();
  close(open(path, O_CREAT | O_WRONLY, 0600));
}
static void removes_file(void) {
  in_a_while();
  unlink(path);
}
static void writes_file(void) {
  in_a_while();
  const int file = open(path, O_WRONLY);
  if (write(file, "x", 1) != 1) _exit(1);
}
static void sets_memory(void) {
  in_a_while();
  shared->ready = 1;
}
static void computes_then_sets_memory(void) {
  compute();
  shared->ready = 1;
}
static void posts(void) {
  in_a_while();
  sem_post(&shared->semaphore);
}
static void holds_lock(void) {
  const int file = open(path, O_CREAT | O_RDWR, 0600);
  flock(file, LOCK_EX);
  shared->ready = 1;
  in_a_while();
}
static void holds_record_lock(void) {
  struct flock lock = {.l_type = F_WRLCK};
  const int file = open(path, O_CREAT | O_RDWR, 0600);
  fcntl(file, F_SETLK, &lock);
  shared->ready = 1;
  in_a_while();
}
static void serves(void) {
  in_a_while();
  const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(socket_, (struct sockaddr*)&address, sizeof address) != 0 || listen(socket_, 1) != 0) _exit(1);
  close(accept(socket_, NULL, NULL));
}
static void runs_shell(void) {
  execlp("sh", "sh", "-c", "sleep 0.02; :", NULL);
  _exit(1);
}
static void* is_overlapped(void* unused) {
  compute();
  shared->ready = 1;
  return unused;
}

static void start_file(void) {
  start(makes_file, 0);
}
static void start_removal(void) {
  close(open(path, O_CREAT | O_WRONLY, 0600));
  start(removes_file, 0);
}
static void start_growth(void) {
  close(open(path, O_CREAT | O_WRONLY, 0600));
  start(writes_file, 0);
}
static void start_child(void) {
  start(in_a_while, 1);
}
static void start_computing_child(void) {
  start(compute, 1);
}
static void start_shell(void) {
  start(runs_shell, 1);
}
static void start_daemon(void) {
  start(in_a_while, 0);
}
static void start_memory(void) {
  start(sets_memory, 1);
}
static void start_computing_memory(void) {
  start(computes_then_sets_memory, 1);
}
static void start_semaphore(void) {
  start(posts, 0);
}
static void start_lock(void) {
  start(holds_lock, 0);
  while (shared->ready == 0) continue;
}
static void start_record_lock(void) {
  start(holds_record_lock, 0);
  while (shared->ready == 0) continue;
}
static void start_fifo(void) {
  if (mkfifo(path, 0600) != 0) exit(1);
  descriptor = open(path, O_RDWR | O_NONBLOCK);
  start(writes_file, 0);
}
static void start_server(void) {
  // A free port, taken from the host for a moment.
  const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t length = sizeof address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket_, (struct sockaddr*)&address, length) != 0) exit(1);
  getsockname(socket_, (struct sockaddr*)&address, &length);
  close(socket_);
  start(serves, 0);
}
static void start_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, is_overlapped, NULL);
  pthread_detach(thread);
}

static int child_ended(void) {
  return waitpid(process, NULL, WNOHANG) != 0;
}
static int child_waitable(void) {
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG) != 0 || info.si_pid != 0;
}
static int process_gone(void) {
  return kill(process, 0) != 0;
}
static int accessible(void) {
  return access(path, F_OK) == 0;
}
static int opens(void) {
  const int file = open(path, O_RDONLY);
  if (file >= 0) close(file);
  return file >= 0;
}
static int opens_stream(void) {
  FILE* file = fopen(path, "r");
  if (file != NULL) fclose(file);
  return file != NULL;
}
static int is_listed(void) {
  char folder[400];
  strcpy(folder, path);
  *strrchr(folder, '/') = '\0';
  int found = 0;
  DIR* entries = opendir(folder);
  for (struct dirent* entry; (entry = readdir(entries)) != NULL;)
    found |= strcmp(entry->d_name, strrchr(path, '/') + 1) == 0;
  closedir(entries);
  return found;
}
static int vanished(void) {
  struct stat status;
  return stat(path, &status) != 0;
}
static int has_grown(void) {
  struct stat status;
  return stat(path, &status) == 0 && status.st_size > 0;
}
static int memory_set(void) {
  return shared->ready;
}
static int semaphore_taken(void) {
  return sem_trywait(&shared->semaphore) == 0;
}
static int lock_taken(void) {
  const int file = open(path, O_RDWR);
  const int taken = flock(file, LOCK_EX | LOCK_NB) == 0;
  close(file);
  return taken;
}
static int record_lock_taken(void) {
  struct flock lock = {.l_type = F_WRLCK};
  const int file = open(path, O_RDWR);
  const int taken = fcntl(file, F_SETLK, &lock) == 0;
  close(file);
  return taken;
}
static int fifo_read(void) {
  char byte;
  return read(descriptor, &byte, 1) == 1;
}
static int fifo_polled(void) {
  struct pollfd polled = {.fd = descriptor, .events = POLLIN};
  return poll(&polled, 1, 0) == 1;
}
static int fifo_selected(void) {
  struct timeval none = {0};
  fd_set set;
  FD_ZERO(&set);
  FD_SET(descriptor, &set);
  return select(descriptor + 1, &set, NULL, NULL, &none) == 1;
}
static int connected(void) {
  const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  const int done = connect(socket_, (struct sockaddr*)&address, sizeof address) == 0;
  close(socket_);
  return done;
}

static const struct thing {
  const char* name;
  void (*start)(void);
  int (*has_come)(void);
} things[] = {
    {"child", start_child, child_ended},
    {"child-waitid", start_child, child_waitable},
    {"computing-child", start_computing_child, child_ended},
    {"shell", start_shell, child_ended},
    {"process", start_daemon, process_gone},
    {"file", start_file, accessible},
    {"file-open", start_file, opens},
    {"file-fopen", start_file, opens_stream},
    {"file-listed", start_file, is_listed},
    {"file-removed", start_removal, vanished},
    {"file-grown", start_growth, has_grown},
    {"memory", start_memory, memory_set},
    {"computed-memory", start_computing_memory, memory_set},
    {"semaphore", start_semaphore, semaphore_taken},
    {"lock", start_lock, lock_taken},
    {"record-lock", start_record_lock, record_lock_taken},
    {"fifo", start_fifo, fifo_read},
    {"fifo-poll", start_fifo, fifo_polled},
    {"fifo-select", start_fifo, fifo_selected},
    {"server", start_server, connected},
    {"thread", start_thread, memory_set},
};

// ---- the ways to wait a moment ----

static struct timespec soon(clockid_t clock) {
  struct timespec end;
  clock_gettime(clock, &end);
  end.tv_nsec += moment.tv_nsec;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  return end;
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void by_usleep(void) {
  usleep(moment_ms * 1000);
}
static void by_nanosleep(void) {
  nanosleep(&moment, NULL);
}
static void by_clock_nanosleep(void) {
  clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
}
static void by_absolute_sleep(void) {
  const struct timespec end = soon(CLOCK_MONOTONIC);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}
static void by_thrd_sleep(void) {
  thrd_sleep(&moment, NULL);
}
static void by_syscall(void) {
  syscall(SYS_nanosleep, &moment, NULL);
}
static void by_poll(void) {
  poll(NULL, 0, moment_ms);
}
static void by_ppoll(void) {
  ppoll(NULL, 0, &moment, NULL);
}
static void by_select(void) {
  struct timeval duration = {.tv_usec = moment_ms * 1000};
  select(0, NULL, NULL, NULL, &duration);
}
static void by_pselect(void) {
  pselect(0, NULL, NULL, NULL, &moment, NULL);
}
static void by_epoll(void) {
  const int epoll = epoll_create1(0);
  struct epoll_event event;
  epoll_wait(epoll, &event, 1, moment_ms);
  close(epoll);
}
static void by_signal(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigtimedwait(&set, NULL, &moment);
}
static void by_condition(void) {
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const struct timespec end = soon(CLOCK_REALTIME);
  pthread_mutex_lock(&mutex);
  pthread_cond_timedwait(&condition, &mutex, &end);
  pthread_mutex_unlock(&mutex);
}
static void by_mutex(void) {
  pthread_mutex_lock(&mutex);
  const struct timespec end = soon(CLOCK_REALTIME);
  pthread_mutex_timedlock(&mutex, &end);
  pthread_mutex_unlock(&mutex);
}
static void by_semaphore(void) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const struct timespec end = soon(CLOCK_REALTIME);
  sem_timedwait(&semaphore, &end);
}
static void by_futex(void) {
  int word = 0;
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0);
}

static const struct way {
  const char* name;
  void (*wait)(void);
} ways[] = {
    {"usleep", by_usleep},
    {"nanosleep", by_nanosleep},
    {"clock_nanosleep", by_clock_nanosleep},
    {"absolute", by_absolute_sleep},
    {"thrd_sleep", by_thrd_sleep},
    {"syscall", by_syscall},
    {"poll", by_poll},
    {"ppoll", by_ppoll},
    {"select", by_select},
    {"pselect", by_pselect},
    {"epoll", by_epoll},
    {"signal", by_signal},
    {"condition", by_condition},
    {"mutex", by_mutex},
    {"semaphore", by_semaphore},
    {"futex", by_futex},
};

static int is_wanted(const char* name, const char* list) {
  if (strcmp(list, "all") == 0) return 1;
  const size_t length = strlen(name);
  for (const char* at = list; (at = strstr(at, name)) != NULL; at += length) {
    const int begins = at == list || at[-1] == ',';
    if (begins && (at[length] == ',' || at[length] == '\0')) return 1;
  }
  return 0;
}

static void run(const struct thing* thing, const struct way* way) {
  unlink(path);
  shared->ready = 0;
  process = 0;
  const double host_began_s = host_seconds(CLOCK_MONOTONIC);
  thing->start();
  const double end_s = MPI_Wtime() + limit_s;
  int polls = 1;
  int has_come = thing->has_come();
  for (; !has_come && MPI_Wtime() < end_s; ++polls) {
    way->wait();
    has_come = thing->has_come();
  }
  const double host_ms = (host_seconds(CLOCK_MONOTONIC) - host_began_s) * 1e3;
  // A process that sleeps in virtual time takes real time to end after that. Besides: the first poll, the
  // last, and two waits that ended early.
  const double most = (host_ms + thing_ms) / moment_ms + 4;
  if (!has_come)
    printf("%s by %s: gave up after %d polls, %.0f ms\n", thing->name, way->name, polls, host_ms);
  if (polls > most) printf("%s by %s: %d polls in %.0f ms\n", thing->name, way->name, polls, host_ms);
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
  while (waitpid(-1, NULL, 0) > 0) continue;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) return 2;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  sem_init(&shared->semaphore, 1, 0);
  snprintf(path, sizeof path, "%s/outside", argv[1]);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int cases = 0;
  for (size_t i = 0; i < sizeof things / sizeof *things; ++i) {
    for (size_t k = 0; k < sizeof ways / sizeof *ways; ++k) {
      if (!is_wanted(things[i].name, argv[2]) || !is_wanted(ways[k].name, argv[3])) continue;
      run(&things[i], &ways[k]);
      ++cases;
    }
  }
  printf("%d cases\n", cases);
  MPI_Finalize();
  return 0;
}
