/* Makes its system calls itself, by the instruction `syscall`, and reads a clock of the kernel's own code.
   Each mode prints what happens at which virtual time, in milliseconds since the begin. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long call(long number, long first, long second, long third, long fourth) {
  long result = number;
  register long in_r10 __asm__("r10") = fourth;
  register long in_r8 __asm__("r8") = 0;
  register long in_r9 __asm__("r9") = 0;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(first), "S"(second), "d"(third), "r"(in_r10), "r"(in_r8), "r"(in_r9)
                   : "rcx", "r11", "memory");
  return result;
}

static double now_ms(void) {
  struct timespec now = {0};
  call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0);
  return (double)(now.tv_sec % 100000) * 1e3 + (double)now.tv_nsec * 1e-6;
}

static double began_ms;

static void say(const char* what, long result) {
  char line[128];
  const int bytes = snprintf(line, sizeof line, "%s %ld %.0f\n", what, result, now_ms() - began_ms);
  call(SYS_write, 1, (long)line, bytes, 0);
}

static void sleep_ms(long ms) {
  const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  call(SYS_nanosleep, (long)&time, 0, 0, 0);
}

/* Finds clock_gettime in the kernel's own code, as runtimes do. */
typedef int (*Clock)(clockid_t, struct timespec*);
static Clock find_clock(void) {
  const char* image = (const char*)getauxval(AT_SYSINFO_EHDR);
  if (image == NULL) return NULL;
  const Elf64_Ehdr* header = (const Elf64_Ehdr*)image;
  const Elf64_Phdr* parts = (const Elf64_Phdr*)(image + header->e_phoff);
  const Elf64_Dyn* dynamic = NULL;
  const char* base = image;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn*)(image + parts[i].p_offset);
    if (parts[i].p_type == PT_LOAD) base = image - parts[i].p_vaddr;
  }
  const Elf64_Sym* symbols = NULL;
  const char* names = NULL;
  for (; dynamic != NULL && dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym*)(base + dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_STRTAB) names = base + dynamic->d_un.d_ptr;
  }
  for (const Elf64_Sym* one = symbols; (const char*)(one + 1) <= names; ++one) {
    if (strcmp(names + one->st_name, "__vdso_clock_gettime") == 0) return (Clock)(base + one->st_value);
  }
  return NULL;
}

static uint32_t word;

static void* wakes(void* argument) {
  sleep_ms(2000);
  __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
  call(SYS_futex, (long)&word, FUTEX_WAKE_PRIVATE, 1, 0);
  return argument;
}

static void* ends_itself(void* argument) {
  sleep_ms(20);
  call(SYS_exit, 0, 0, 0, 0);
  return argument;
}

static void wait_in_turn(void) {
  sleep_ms(3500);
  say("sleeps", 0);
  pthread_t thread;
  pthread_create(&thread, NULL, wakes, NULL);
  while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) == 0)
    call(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, 0);
  pthread_join(thread, NULL);
  say("is_woken", 0);
  uint32_t other = 0;
  const struct timespec second = {.tv_sec = 1};
  say("times_out", call(SYS_futex, (long)&other, FUTEX_WAIT_PRIVATE, 0, (long)&second));
  const double until_ms = now_ms() + 1;
  while (now_ms() < until_ms) continue;
  say("spins", 0);
  const Clock clock = find_clock();
  struct timespec now = {0};
  if (clock != NULL) clock(CLOCK_REALTIME, &now);
  say("day", clock == NULL ? 12989 : now.tv_sec / 86400);
  const sigset_t all = {.__val = {~0UL}};
  call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8);
  sleep_ms(10);
  say("blocks_signals", 0);
  const pid_t child = (pid_t)call(SYS_vfork, 0, 0, 0, 0);
  if (child == 0) call(SYS_exit_group, 7, 0, 0, 0);
  int status = 0;
  waitpid(child, &status, 0);
  say("forks", WEXITSTATUS(status));
  say("knows_no_call", call(511, 0, 0, 0, 0));
  pthread_create(&thread, NULL, ends_itself, NULL);
  pthread_join(thread, NULL);
  say("is_joined", 0);
}

/* A thread without anything of the C library's. */
static int counts(void* argument) {
  __atomic_fetch_add((uint32_t*)argument, 1, __ATOMIC_SEQ_CST);
  return 0;
}

/* Creates a thread on a stack of its own; `has_result`: by clone3. */
static long start_thread(char* stack, long bytes, int by_clone3, uint32_t* ended) {
  const uint64_t flags =
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  struct clone_args arguments = {
      .flags = flags, .child_tid = (uint64_t)ended, .stack = (uint64_t)stack, .stack_size = (uint64_t)bytes};
  long result = by_clone3 ? SYS_clone3 : SYS_clone;
  register long fourth __asm__("r10") = (long)ended;
  register long fifth __asm__("r8") = 0;
  register int (*routine)(void*) __asm__("r12") = counts;
  register void* argument __asm__("r13") = &word;
  __asm__ volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jne 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq %%r13, %%rdi\n\t"
      "andq $-16, %%rsp\n\t"
      "callq *%%r12\n\t"
      "xorl %%edi, %%edi\n\t"
      "movl $60, %%eax\n\t"
      "syscall\n\t"
      "1:"
      : "+a"(result)
      : "D"(by_clone3 ? (long)&arguments : (long)flags),
        "S"(by_clone3 ? (long)sizeof arguments : (long)(stack + bytes)), "d"(0L), "r"(fourth), "r"(fifth),
        "r"(routine), "r"(argument)
      : "rcx", "r11", "memory");
  return result;
}

static void start_threads(void) {
  enum { bytes = 1 << 16 };
  for (int by_clone3 = 0; by_clone3 < 2; ++by_clone3) {
    char* stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static uint32_t ended[2] = {1, 1};
    if (start_thread(stack, bytes, by_clone3, &ended[by_clone3]) < 0) exit(3);
    while (__atomic_load_n(&ended[by_clone3], __ATOMIC_SEQ_CST) != 0) syscall(SYS_sched_yield);
  }
  say("threads", (long)word);
}

static volatile sig_atomic_t trapped;

static void note_trap(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  trapped = info->si_syscall;
}

/* A filter and a handler of its own. */
static void filter(void) {
  struct sigaction action = {.sa_flags = SA_SIGINFO};
  action.sa_sigaction = note_trap;
  sigaction(SIGSYS, &action, NULL);
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) exit(3);
  call(SYS_memfd_create, (long)"none", 0, 0, 0);
  say("traps", trapped);
  sleep_ms(10);
  say("sleeps", 0);
}

static void sleeps(int number) {
  (void)number;
  sleep_ms(10);
  say("sleeps", 0);
}

/* A stack for signals with room for little more than the frames of two. */
static void handle_on_small_stack(void) {
  const stack_t stack = {.ss_sp = malloc(8192), .ss_size = 8192};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = sleeps, .sa_flags = SA_ONSTACK};
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < 3; ++i) call(SYS_kill, getpid(), SIGUSR1, 0, 0);
  stack_t now = {0};
  sigaltstack(NULL, &now);
  say("keeps_stack", now.ss_sp == stack.ss_sp && now.ss_size == stack.ss_size);
}

static volatile sig_atomic_t handled;
static void reads_clock(int number) {
  (void)number;
  now_ms();
  handled = 1;
}

/* A process of the host's time, because it begins before virtual time does. */
static void send_signals_from_outside(void) {
  const pid_t parent = getpid();
  if (fork() != 0) return;
  while (getppid() == parent) {
    kill(parent, SIGUSR1);
    usleep(20);
  }
  _exit(0);
}

static void await_signals(void) {
  const stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = reads_clock, .sa_flags = SA_ONSTACK | SA_RESTART};
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < 100000 || !handled; ++i) now_ms();
  signal(SIGUSR1, SIG_IGN);
  say("handles", handled);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "storm") == 0) {
    signal(SIGUSR1, SIG_IGN);
    send_signals_from_outside();
  }
  MPI_Init(&argc, &argv);
  began_ms = now_ms();
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "waits") == 0) wait_in_turn();
  if (strcmp(mode, "threads") == 0) start_threads();
  if (strcmp(mode, "filter") == 0) filter();
  if (strcmp(mode, "stack") == 0) handle_on_small_stack();
  if (strcmp(mode, "storm") == 0) await_signals();
  if (strcmp(mode, "ring") == 0) say("ring", call(SYS_io_uring_setup, 4, 0, 0, 0));
  if (strcmp(mode, "dispatch") == 0) say("dispatch", prctl(59, 1, 0, 0, 0));
  MPI_Finalize();
  return 0;
}
