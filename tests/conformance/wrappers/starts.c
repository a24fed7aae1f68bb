// Starts a program in one of many ways, a rank each, with an environment that holds nothing of the run:
// starts PROGRAM, as rank 0 to 31. Each way must find the shim again.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

extern char** environ;

static char* program;
static char* arguments[3];
static char* nothing[] = {NULL};

static int finished(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int plain(void) {
  return execve(program, arguments, nothing);
}
static int no_variables(void) {
  return execve(program, arguments, NULL);
}
static int no_environment(void) {
  environ = NULL;
  return execv(program, arguments);
}
static int cleared(void) {
  clearenv();
  return execvp(program, arguments);
}
static int searched(void) {
  return execvpe(program, arguments, nothing);
}
static int listed(void) {
  clearenv();
  return execl(program, program, (char*)NULL);
}
static int listed_and_searched(void) {
  char* name = strrchr(program, '/');
  *name = '\0';
  clearenv();
  setenv("PATH", program, 1);
  return execlp(name + 1, name + 1, (char*)NULL);
}
static int listed_with_variables(void) {
  return execle(program, program, (char*)NULL, nothing);
}
static int at(void) {
  return execveat(AT_FDCWD, program, arguments, nothing, 0);
}
static int at_descriptor(void) {
  return execveat(open(program, O_RDONLY), "", arguments, nothing, AT_EMPTY_PATH);
}
static int descriptor(void) {
  return fexecve(open(program, O_RDONLY), arguments, nothing);
}
static int direct(void) {
  return (int)syscall(SYS_execve, program, arguments, nothing);
}
static int direct_at(void) {
  return (int)syscall(SYS_execveat, AT_FDCWD, program, arguments, nothing, 0);
}
static int spawned(void) {
  pid_t process = 0;
  return posix_spawn(&process, program, NULL, NULL, arguments, nothing) != 0 ? 98 : finished(process);
}
static int spawned_with_actions(void) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, 0);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, 1, 9);
  pid_t process = 0;
  return posix_spawnp(&process, program, &actions, NULL, arguments, NULL) != 0 ? 98 : finished(process);
}
static int by_system(void) {
  clearenv();
  const int status = system(program);
  return environ == NULL && WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}
static int by_pipe(void) {
  clearenv();
  FILE* pipe = popen(program, "r");
  char line[200];
  while (fgets(line, sizeof line, pipe) != NULL) fputs(line, stdout);
  return pclose(pipe);
}
static int by_words(void) {
  clearenv();
  char command[PATH_MAX + 10];
  snprintf(command, sizeof command, "\"$(%s)\"", program);
  wordexp_t words;
  if (wordexp(command, &words, 0) != 0) return 96;
  puts(words.we_wordv[0]);
  return 0;
}
static int after_vfork(void) {
  char** before = environ;
  const pid_t process = vfork();
  if (process == 0) {
    execve(program, arguments, nothing);
    _exit(95);
  }
  const int status = finished(process);
  return environ == before && getenv("APENET_MAPPING") != NULL ? status : 94;
}
static char** many(int count, char* last) {
  char** all = malloc(((size_t)count + 2) * sizeof *all);
  for (int i = 0; i < count; ++i) {
    all[i] = malloc(24);
    snprintf(all[i], 24, "VARIABLE_%hd", (short)i);
    strcat(all[i], "=1");
  }
  all[count] = last;
  all[count + (last != NULL)] = NULL;
  return all;
}
static int many_variables(void) {
  return execve(program, arguments, many(10000, NULL));
}
static int many_variables_often(void) {
  char** all = many(10000, NULL);
  for (int i = 0; i < 20; ++i) {
    const pid_t process = vfork();
    if (process == 0) {
      execve("/bin/true", arguments, all);
      _exit(93);
    }
    if (finished(process) != 0) return 93;
  }
  return execve(program, arguments, all);
}
static int twice_preloaded(void) {
  char* variables[] = {"LD_PRELOAD=libm.so.6", "A=1", "LD_PRELOAD=libdl.so.2", "LD_PRELOAD=", NULL};
  return execve(program, arguments, variables);
}
static int preloaded_relatively(void) {
  char* variables[] = {"LD_PRELOAD=libm.so.6:libdl.so.2  ", NULL};
  return execve(program, arguments, variables);
}
static int malformed(void) {
  char* variables[] = {"", "=", "NOTHING", "=LD_PRELOAD", "LD_PRELOAD", "FI_PROVIDER", "PMI_FD", NULL};
  return execve(program, arguments, variables);
}
static int wrong_values(void) {
  char* variables[] = {"FI_PROVIDER=tcp",
                       "FI_PROVIDER=shm",
                       "FI_PROVIDER_PATH=/nowhere",
                       "APENET_MAPPING=/nowhere",
                       "MPIR_CVAR_NOLOCAL=0",
                       "LD_LIBRARY_PATH=/nowhere",
                       NULL};
  return execve(program, arguments, variables);
}
static int long_value(void) {
  static char value[100000] = "LONG=";
  memset(value + 5, 'x', sizeof value - 6);
  char* variables[] = {value, NULL};
  return execve(program, arguments, variables);
}

static void* reads_environment(void* unused) {
  for (volatile unsigned i = 0;; ++i) {
    if (getenv("NOWHERE") != NULL) abort();
    if (i % 1000 == 0) usleep(200);
  }
  return unused;
}
static void begin_threads(void) {
  pthread_t thread;
  for (int i = 0; i < 2; ++i) pthread_create(&thread, NULL, reads_environment, NULL);
}
static int beside_threads(void) {
  begin_threads();
  return execve(program, arguments, nothing);
}
static void* executes(void* unused) {
  plain();
  return unused;
}
static int of_a_thread(void) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  pthread_t thread;
  pthread_create(&thread, &small, executes, NULL);
  pause();
  return 92;
}
static int by_system_beside_threads(void) {
  begin_threads();
  return by_system();
}
static void on_signal(int number) {
  (void)number;
  plain();
}
static int of_a_handler(void) {
  const size_t bytes = (size_t)sysconf(_SC_SIGSTKSZ);
  const stack_t stack = {.ss_sp = malloc(bytes), .ss_size = bytes};
  sigaltstack(&stack, NULL);
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER};
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  return 91;
}
static int executes_in_clone(void* unused) {
  (void)unused;
  plain();
  _exit(90);
}
static int of_a_small_stack(void) {
  const size_t bytes = 16 << 10;
  char* stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return finished(clone(executes_in_clone, stack + bytes, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
}
static int as_a_daemon(void) {
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0) return 89;
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    plain();
  }
  close(ends[1]);
  return (int)read(ends[0], &byte, 1);  // the daemon has the other end
}
static int after_failures(void) {
  char* with_one[] = {"ONE=1", NULL};
  if (execve("/nowhere/at/all", arguments, with_one) == 0 || errno != ENOENT) return 88;
  if (execvpe("apenet-no-such-program", arguments, nothing) == 0 || errno != ENOENT) return 87;
  if (execve("/", arguments, nothing) == 0 || errno != EACCES) return 86;
  pid_t process = 0;
  if (posix_spawn(&process, "/nowhere", NULL, NULL, arguments, nothing) != ENOENT) return 85;
  return plain();
}

static int (*const ways[])(void) = {plain,
                                    no_variables,
                                    no_environment,
                                    cleared,
                                    searched,
                                    listed,
                                    listed_and_searched,
                                    listed_with_variables,
                                    at,
                                    at_descriptor,
                                    descriptor,
                                    direct,
                                    direct_at,
                                    spawned,
                                    spawned_with_actions,
                                    by_system,
                                    by_pipe,
                                    by_words,
                                    after_vfork,
                                    many_variables,
                                    many_variables_often,
                                    twice_preloaded,
                                    preloaded_relatively,
                                    malformed,
                                    wrong_values,
                                    long_value,
                                    beside_threads,
                                    of_a_thread,
                                    by_system_beside_threads,
                                    of_a_handler,
                                    of_a_small_stack,
                                    as_a_daemon,
                                    after_failures};

int main(int count, char** given) {
  const char* rank = getenv("APENET_RANK");
  const size_t number = (size_t)atoi(rank);
  if (count == 3) {  // after itself, twice
    given[2][0] == '1' ? execle(given[0], given[0], given[1], "2", (char*)NULL, nothing) : 0;
  }
  program = given[1];
  arguments[0] = program;
  if (count == 2 && number == sizeof ways / sizeof *ways)
    return execle(given[0], given[0], program, "1", (char*)NULL, nothing);
  const int status = count == 3 ? plain() : ways[number]();
  if (status != 0) fprintf(stderr, "way %zu: status %d, %s\n", number, status, strerror(errno));
  return status;
}
