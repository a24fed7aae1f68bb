// A rank checks for what a process outside the run makes, by calls that the shim does not replace, sleeps,
// checks again, and gives up after a time limit. Arguments: a folder for files, the name of a check or "all".
// Prints a line for each check that has not found its thing, and the number of checks.
//
// With "outside" as a third argument it is that process: it makes the thing of each check a moment after the
// check has begun.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <mpi.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

enum { moment_us = 20000, while_us = 100000 };
static const double limit_s = 10;  // virtual, and far more than any thing takes

static char path[400], begun[440], queue_name[40];
static int descriptor = -1, semaphores = -1;
static mqd_t queue = -1;

static void nothing(void) {}
static void make_file(void) {
  close(open(path, O_CREAT | O_WRONLY, 0600));
}
static void make_folder(void) {
  mkdir(path, 0700);
}
static void open_file(void) {
  descriptor = open(path, O_CREAT | O_RDWR, 0600);
  if (write(descriptor, "wait", 4) != 4) exit(1);
}
static void open_fifo(void) {
  if (mkfifo(path, 0600) != 0) exit(1);
  descriptor = open(path, O_RDONLY | O_NONBLOCK);
}
static void make_semaphores(void) {
  semaphores = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
}
static void make_queue(void) {
  queue = mq_open(queue_name, O_CREAT | O_RDWR, 0600, NULL);
}
static void overwrite(void) {
  const int file = open(path, O_WRONLY);
  if (write(file, "done", 4) != 4) _exit(1);
}
static void write_fifo(void) {
  const int file = open(path, O_WRONLY);
  if (write(file, "x", 1) != 1) _exit(1);
  usleep(10 * while_us);  // the rank sees the byte as long as the fifo is open
  close(file);
}
static void post(void) {
  semctl(semaphores, 0, SETVAL, 1);
}
static void send_message(void) {
  queue = mq_open(queue_name, O_RDWR);
  mq_send(queue, "x", 1, 0);
  mq_unlink(queue_name);
}
static void let_go(void) {
  close(descriptor);
}
static int by_statfs(void) {
  struct statfs status;
  return statfs(path, &status) == 0;
}
static int by_utime(void) {
  return utime(path, NULL) == 0;
}
static int by_ftok(void) {
  return ftok(path, 1) != -1;
}
static int by_mkdtemp(void) {
  char name[440];
  snprintf(name, sizeof name, "%s/XXXXXX", path);
  return mkdtemp(name) != NULL && rmdir(name) == 0;
}
static int by_getlk(void) {
  struct flock lock = {.l_type = F_WRLCK};
  return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}
static int by_fionread(void) {
  int bytes = 0;
  return ioctl(descriptor, FIONREAD, &bytes) == 0 && bytes > 0;
}
static int by_newfstatat(void) {
  struct stat status;
  return syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0;
}
static int by_open(void) {
  const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
  return file >= 0 && close(file) == 0;
}
static int by_openat2(void) {
  const struct open_how how = {.flags = O_RDONLY};
  const int file = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  return file >= 0 && close(file) == 0;
}
static int by_faccessat2(void) {
  return syscall(SYS_faccessat2, AT_FDCWD, path, F_OK, 0) == 0;
}
static int by_inotify(void) {
  const int watch = inotify_init();
  const int added = inotify_add_watch(watch, path, IN_MODIFY);
  close(watch);
  return added >= 0;
}
static int by_semctl(void) {
  return semctl(semaphores, 0, GETVAL) == 1;
}
static int by_mq_getattr(void) {
  struct mq_attr status;
  return mq_getattr(queue, &status) == 0 && status.mq_curmsgs == 1;
}
static int by_pread(void) {
  char text[4] = "";
  return pread(descriptor, text, 4, 0) == 4 && memcmp(text, "done", 4) == 0;
}
static int by_seek_and_read(void) {
  char text[4] = "";
  lseek(descriptor, 0, SEEK_SET);
  return read(descriptor, text, 4) == 4 && memcmp(text, "done", 4) == 0;
}
static int by_stream(void) {
  char text[5] = "";
  FILE* const file = fopen(path, "r");
  const int is_done = fgets(text, sizeof text, file) != NULL && strcmp(text, "done") == 0;
  fclose(file);
  return is_done;
}

// ---- the ways to sleep ----

static void by_usleep(void) {
  usleep(moment_us);
}
static void* sleeps(void* unused) {
  usleep(moment_us);
  return unused;
}
static void by_joined_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleeps, NULL);
  pthread_join(thread, NULL);
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_over;
static void* ends_wait(void* unused) {
  usleep(moment_us);
  pthread_mutex_lock(&mutex);
  is_over = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return unused;
}
static void by_condition(void) {
  pthread_t thread;
  is_over = 0;
  pthread_create(&thread, NULL, ends_wait, NULL);
  pthread_mutex_lock(&mutex);
  while (!is_over) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
}
static void by_usleep_beside_child(void) {
  usleep(moment_us);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
}
static void by_usleep_with_blocked_signals(void) {
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  usleep(moment_us);
  by_statfs();
  sigprocmask(SIG_SETMASK, &before, NULL);
}

static const struct check {
  const char* name;
  void (*begin)(void);
  void (*work)(void);
  int (*has_come)(void);
  void (*sleeps)(void);
} checks[] = {
    {"statfs", nothing, make_file, by_statfs, by_usleep},
    {"utime", nothing, make_file, by_utime, by_usleep},
    {"ftok", nothing, make_file, by_ftok, by_usleep},
    {"mkdtemp", nothing, make_folder, by_mkdtemp, by_usleep},
    {"getlk", open_file, let_go, by_getlk, by_usleep},
    {"fionread", open_fifo, write_fifo, by_fionread, by_usleep},
    {"newfstatat", nothing, make_file, by_newfstatat, by_usleep},
    {"open", nothing, make_file, by_open, by_usleep},
    {"openat2", nothing, make_file, by_openat2, by_usleep},
    {"faccessat2", nothing, make_file, by_faccessat2, by_usleep},
    {"inotify", nothing, make_file, by_inotify, by_usleep},
    {"semctl", make_semaphores, post, by_semctl, by_usleep},
    {"mq_getattr", make_queue, send_message, by_mq_getattr, by_usleep},
    {"pread", open_file, overwrite, by_pread, by_usleep},
    {"seek and read", open_file, overwrite, by_seek_and_read, by_usleep},
    {"stream", open_file, overwrite, by_stream, by_usleep},
    {"joined thread", nothing, make_file, by_statfs, by_joined_thread},
    {"condition", nothing, make_file, by_statfs, by_condition},
    {"beside a child", nothing, make_file, by_statfs, by_usleep_beside_child},
    {"with blocked signals", nothing, make_file, by_statfs, by_usleep_with_blocked_signals},
};

static int is_wanted(const struct check* check, const char* name) {
  return strcmp(name, "all") == 0 || strcmp(name, check->name) == 0;
}

// Tells the other process how far this one is.
static void tell(const struct check* check, const char* stage) {
  char unfinished[460];
  snprintf(begun, sizeof begun, "%s.%s.%s", path, check->name, stage);
  snprintf(unfinished, sizeof unfinished, "%s.part", begun);
  FILE* const file = fopen(unfinished, "w");
  fprintf(file, "%d", semaphores);
  fclose(file);
  rename(unfinished, begun);
}

static int hears(const struct check* check, const char* stage) {
  snprintf(begun, sizeof begun, "%s.%s.%s", path, check->name, stage);
  FILE* const file = fopen(begun, "r");
  const int is_there = file != NULL && fscanf(file, "%d", &semaphores) == 1;
  if (file != NULL) fclose(file);
  return is_there;
}

static void act_outside(const struct check* check) {
  const int takes_lock = check->work == let_go;
  while (!hears(check, "begins")) usleep(1000);
  if (takes_lock) {
    struct flock lock = {.l_type = F_WRLCK};
    descriptor = open(path, O_RDWR);
    if (fcntl(descriptor, F_SETLK, &lock) != 0) exit(1);
  }
  tell(check, "ready");
  usleep(while_us);
  check->work();
}

static void check_until(const struct check* check) {
  const double end_s = MPI_Wtime() + limit_s;
  check->begin();
  tell(check, "begins");
  while (!hears(check, "ready") && MPI_Wtime() < end_s) usleep(moment_us);
  int has_come = check->has_come();
  while (!has_come && MPI_Wtime() < end_s) {
    check->sleeps();
    has_come = check->has_come();
  }
  if (!has_come) printf("%s: gave up\n", check->name);
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
  remove(path);
}

int main(int argc, char** argv) {
  const int is_outside = argc == 4 && strcmp(argv[3], "outside") == 0;
  if (argc != 3 && !is_outside) return 2;
  snprintf(path, sizeof path, "%s/thing", argv[1]);
  struct stat folder;
  if (stat(argv[1], &folder) != 0) return 2;
  snprintf(queue_name, sizeof queue_name, "/apenet-any-call-%lu", (unsigned long)folder.st_ino);
  if (!is_outside) MPI_Init(&argc, &argv);
  int count = 0;
  for (const struct check* check = checks; check != checks + sizeof checks / sizeof *checks; ++check) {
    if (!is_wanted(check, argv[2])) continue;
    ++count;
    is_outside ? act_outside(check) : check_until(check);
  }
  if (is_outside) return 0;
  if (semaphores >= 0) semctl(semaphores, 0, IPC_RMID);
  printf("%d checks\n", count);
  MPI_Finalize();
  return 0;
}
