// A rank checks for what a process that is no child makes, sleeps, checks again, and gives up after a time
// limit. Arguments: a folder for files, the name of a thing or "all". Prints a line for each thing that it
// has not found, and the number of things.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <mpi.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { thing_us = 20000, moment_us = 2000 };
static const double limit_s = 10;  // virtual, and far more than any thing takes

static const char* folder;
static char path[400], other[420], inner[420], name[40];
static int descriptor = -1;
static FILE* stream;
static key_t key;

static void by_daemon(void (*work)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    usleep(thing_us);
    work();
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void nothing(void) {}
static void make_file(void) {
  close(open(path, O_CREAT | O_WRONLY, 0600));
}
static void make_folder(void) {
  mkdir(path, 0700);
}
static void make_full_folder(void) {
  mkdir(path, 0700);
  close(open(inner, O_CREAT | O_WRONLY, 0600));
}
static void make_fifo(void) {
  if (mkfifo(path, 0600) != 0) exit(1);
}
static void open_file(void) {
  descriptor = open(path, O_CREAT | O_RDONLY, 0600);
}
static void open_stream(void) {
  make_file();
  stream = fopen(path, "r");
}

static void make_link(void) {
  if (symlink("target", path) != 0) _exit(1);
}
static void allow(void) {
  chmod(path, 0700);
}
static void append(void) {
  const int file = open(path, O_WRONLY | O_APPEND);
  if (write(file, "7\n", 2) != 2) _exit(1);
}
static void read_fifo(void) {
  const int file = open(path, O_RDONLY);
  usleep(thing_us);
  close(file);
}
static void make_inner(void) {
  close(open(inner, O_CREAT | O_WRONLY, 0600));
}
static void mark(void) {
  setxattr(path, "user.mark", "x", 1, 0);
}
static void empty(void) {
  unlink(inner);
}
static void make_shared_memory(void) {
  shm_open(name, O_CREAT | O_RDWR, 0600);
}
static void make_semaphore(void) {
  sem_open(name, O_CREAT, 0600, 1);
}
static void make_queue(void) {
  mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
}
static void make_segment(void) {
  shmget(key, 4096, IPC_CREAT | 0600);
}
static void make_semaphores(void) {
  semget(key, 1, IPC_CREAT | 0600);
}
static void make_messages(void) {
  msgget(key, IPC_CREAT | 0600);
}

static int is_link(void) {
  char target[20];
  return readlink(path, target, sizeof target) > 0;
}
static int is_executable(void) {
  return access(path, X_OK) == 0;
}
static int is_moved(void) {
  return rename(path, other) == 0;
}
static int is_removed(void) {
  return rmdir(path) == 0;
}
static int is_entered(void) {
  return chdir(path) == 0;
}
static int is_resolved(void) {
  char* resolved = realpath(path, NULL);
  free(resolved);
  return resolved != NULL;
}
static int fits(void) {
  char pattern[420];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s*", path);
  const int result = glob(pattern, 0, NULL, &found);
  globfree(&found);
  return result == 0;
}
static int visited;
static int visit(const char* file, const struct stat* status, int kind) {
  (void)file, (void)status;
  visited += kind == FTW_F;
  return 0;
}
static int visit_more(const char* file, const struct stat* status, int kind, struct FTW* place) {
  (void)place;
  return visit(file, status, kind);
}
static int is_visited(void) {
  visited = 0;
  ftw(path, visit, 4);
  return visited > 0;
}
static int is_visited_more(void) {
  visited = 0;
  nftw(path, visit_more, 4, 0);
  return visited > 0;
}
static int is_listed(void) {
  struct dirent** names = NULL;
  const int found = scandir(path, &names, NULL, NULL);
  for (int i = 0; i < found; ++i) free(names[i]);
  free(names);
  return found > 2;
}
static int is_in_tree(void) {
  char* const paths[] = {path, NULL};
  FTS* const tree = fts_open(paths, FTS_PHYSICAL, NULL);
  int found = 0;
  for (FTSENT* one = fts_read(tree); one != NULL; one = fts_read(tree)) found += one->fts_info == FTS_F;
  fts_close(tree);
  return found > 0;
}
static int is_truncated(void) {
  return truncate(path, 0) == 0;
}
static int is_stamped(void) {
  return utimensat(AT_FDCWD, path, NULL, 0) == 0;
}
static int is_in_file_system(void) {
  struct statvfs status;
  return statvfs(path, &status) == 0;
}
static int is_changed(void) {
  return chmod(path, 0600) == 0;
}
static int is_reopened(void) {
  stream = fopen("/dev/null", "r");
  stream = freopen(path, "r", stream);
  return stream != NULL;
}
static void make_address(void) {
  const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "address"};
  descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  if (chdir(folder) != 0 || bind(descriptor, (const struct sockaddr*)&address, sizeof address) != 0) exit(1);
}
static void free_address(void) {
  unlink("address");
}
static int is_bound(void) {
  const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "address"};
  const int other_socket = socket(AF_UNIX, SOCK_STREAM, 0);
  const int result = bind(other_socket, (const struct sockaddr*)&address, sizeof address);
  close(other_socket);
  if (result == 0) unlink("address");
  return result == 0;
}
// A library that is loaded already, by another name.
static void make_library(void) {
  Dl_info info;
  if (dladdr((void*)printf, &info) == 0 || symlink(info.dli_fname, path) != 0) _exit(1);
}
static int is_loaded(void) {
  void* const library = dlopen(path, RTLD_NOW);
  return library != NULL && dlclose(library) == 0;
}
static int queue;
static void make_message_queue(void) {
  queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
}
static void send_message(void) {
  const struct {
    long type;
    char byte;
  } message = {1, 'x'};
  if (msgsnd(queue, &message, 1, 0) != 0) _exit(1);
}
static int has_message(void) {
  struct {
    long type;
    char byte;
  } message;
  return msgrcv(queue, &message, 1, 0, IPC_NOWAIT) == 1 && msgctl(queue, IPC_RMID, NULL) == 0;
}
static int is_marked(void) {
  char value;
  return getxattr(path, "user.mark", &value, 1) == 1;
}
static int has_reader(void) {
  descriptor = open(path, O_WRONLY | O_NONBLOCK);
  return descriptor >= 0;
}
static int has_byte(void) {
  char byte;
  return pread(descriptor, &byte, 1, 0) == 1;
}
static int has_size(void) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && status.st_size > 0;
}
static int has_end(void) {
  return lseek(descriptor, 0, SEEK_END) > 0;
}
static int has_line(void) {
  char line[20];
  clearerr(stream);
  return fgets(line, sizeof line, stream) != NULL;
}
static int has_character(void) {
  rewind(stream);
  return fgetc(stream) != EOF;
}
static int has_number(void) {
  int number = 0;
  FILE* file = fopen(path, "r");
  const int count = fscanf(file, "%d", &number);
  fclose(file);
  return count == 1;
}
static int has_shared_memory(void) {
  return shm_open(name, O_RDONLY, 0) >= 0 && shm_unlink(name) == 0;
}
static int has_semaphore(void) {
  return sem_open(name, 0) != SEM_FAILED && sem_unlink(name) == 0;
}
static int has_queue(void) {
  return mq_open(name, O_RDONLY) >= 0 && mq_unlink(name) == 0;
}
static int has_segment(void) {
  const int found = shmget(key, 4096, 0);
  return found >= 0 && shmctl(found, IPC_RMID, NULL) == 0;
}
static int has_semaphores(void) {
  const int found = semget(key, 1, 0);
  return found >= 0 && semctl(found, 0, IPC_RMID) == 0;
}
static int has_messages(void) {
  const int found = msgget(key, 0);
  return found >= 0 && msgctl(found, IPC_RMID, NULL) == 0;
}

static const struct thing {
  const char* name;
  void (*begin)(void);
  void (*work)(void);
  int (*has_come)(void);
} things[] = {
    {"link", nothing, make_link, is_link},
    {"rights", make_file, allow, is_executable},
    {"rename", nothing, make_file, is_moved},
    {"rmdir", make_full_folder, empty, is_removed},
    {"chdir", nothing, make_folder, is_entered},
    {"realpath", nothing, make_file, is_resolved},
    {"glob", nothing, make_file, fits},
    {"ftw", make_folder, make_inner, is_visited},
    {"nftw", make_folder, make_inner, is_visited_more},
    {"scandir", make_folder, make_inner, is_listed},
    {"fts", make_folder, make_inner, is_in_tree},
    {"getxattr", make_file, mark, is_marked},
    {"truncate", nothing, make_file, is_truncated},
    {"utimensat", nothing, make_file, is_stamped},
    {"statvfs", nothing, make_file, is_in_file_system},
    {"chmod", nothing, make_file, is_changed},
    {"freopen", nothing, make_file, is_reopened},
    {"bind", make_address, free_address, is_bound},
    {"dlopen", nothing, make_library, is_loaded},
    {"msgrcv", make_message_queue, send_message, has_message},
    {"reader of a fifo", make_fifo, read_fifo, has_reader},
    {"pread", open_file, append, has_byte},
    {"fstat", open_file, append, has_size},
    {"lseek", open_file, append, has_end},
    {"fgets", open_stream, append, has_line},
    {"rewind", open_stream, append, has_character},
    {"fscanf", make_file, append, has_number},
    {"shm_open", nothing, make_shared_memory, has_shared_memory},
    {"sem_open", nothing, make_semaphore, has_semaphore},
    {"mq_open", nothing, make_queue, has_queue},
    {"shmget", nothing, make_segment, has_segment},
    {"semget", nothing, make_semaphores, has_semaphores},
    {"msgget", nothing, make_messages, has_messages},
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) return 2;
  folder = argv[1];
  snprintf(path, sizeof path, "%s/thing", argv[1]);
  snprintf(other, sizeof other, "%s/other", argv[1]);
  snprintf(inner, sizeof inner, "%s/inner", path);
  snprintf(name, sizeof name, "/apenet-checks-%d", (int)getpid());
  key = 0x41500000 + getpid();
  int count = 0;
  for (const struct thing* thing = things; thing != things + sizeof things / sizeof *things; ++thing) {
    if (strcmp(argv[2], "all") != 0 && strcmp(argv[2], thing->name) != 0) continue;
    ++count;
    thing->begin();
    by_daemon(thing->work);
    const double end_s = MPI_Wtime() + limit_s;
    int has_come = thing->has_come();
    while (!has_come && MPI_Wtime() < end_s) {
      usleep(moment_us);
      has_come = thing->has_come();
    }
    if (!has_come) printf("%s: gave up\n", thing->name);
    if (chdir("/") != 0) return 3;
    if (descriptor >= 0) close(descriptor);
    if (stream != NULL) fclose(stream);
    descriptor = -1;
    stream = NULL;
    remove(inner);
    remove(path);
    remove(other);
  }
  printf("%d things\n", count);
  MPI_Finalize();
  return 0;
}
