// An alarm ends calls that wait in the host, as on Linux, and is kept by a program that the rank executes.
// Prints "passed", or what went wrong. Arguments: none, or what the executed program does.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static volatile sig_atomic_t rings;

static void ring(int signal) {
  (void)signal;
  ++rings;
}

static int wrong;
static double began_s;

static void begin(void) {
  rings = 0;
  began_s = MPI_Wtime();
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 200000}}, NULL);
}

static void end(const char* name, long result, int error) {
  const double took_s = MPI_Wtime() - began_s;
  if (result == -1 && error == EINTR && rings == 1 && took_s >= 0.2 && took_s < 1.01) return;
  printf("%s: result %ld, error %d, %d signals, %.3f s\n", name, result, error, (int)rings, took_s);
  wrong = 1;
}

#define ENDS(name, call)        \
  do {                          \
    begin();                    \
    const long result = (call); \
    end(name, result, errno);   \
  } while (0)

static void fill(int file) {
  static char bytes[1 << 16];
  fcntl(file, F_SETFL, O_NONBLOCK);
  while (write(file, bytes, sizeof bytes) > 0) continue;
  while (write(file, bytes, 1) > 0) continue;
  fcntl(file, F_SETFL, 0);
}

static int full_server(struct sockaddr_un* address) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "apenet-full-%d", getpid());
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(server, (struct sockaddr*)address, sizeof *address) != 0 || listen(server, 0) != 0) abort();
  for (int i = 0; i < 8; ++i) {
    const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connect(client, (struct sockaddr*)address, sizeof *address) != 0) break;
  }
  return server;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "killed") == 0) {
    while (1) pause();
  }
  MPI_Init(&argc, &argv);
  const struct sigaction action = {.sa_handler = ring};
  sigaction(SIGALRM, &action, NULL);
  int ends[2], sockets[2];
  if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) abort();
  fill(ends[1]);
  fill(sockets[0]);
  char byte[64] = {0};
  struct iovec part = {byte, 1};
  ENDS("write", write(ends[1], byte, 1));
  ENDS("writev", writev(ends[1], &part, 1));
  ENDS("send", send(sockets[0], byte, 1, 0));
  ENDS("readv", readv(sockets[0], &part, 1));
  struct sockaddr_un address;
  full_server(&address);
  ENDS("connect", connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&address, sizeof address));
  const int queue = msgget(IPC_PRIVATE, 0600);
  ENDS("msgrcv", msgrcv(queue, byte, 8, 0, 0));
  msgctl(queue, IPC_RMID, NULL);
  char name[4096];
  snprintf(name, sizeof name, "/apenet-%d", getpid());
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
  const mqd_t named = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
  mq_unlink(name);
  ENDS("mq_receive", mq_receive(named, byte, 8, NULL));
  mq_send(named, byte, 1, 0);
  ENDS("mq_send", mq_send(named, byte, 1, 0));
  if (argc > 1) {
    snprintf(name, sizeof name, "%s/fifo", argv[2]);
    mkfifo(name, 0600);
    ENDS("open", open(name, O_RDONLY));
  }
  alarm(1);
  execl("/nowhere", "/nowhere", NULL);  // fails, and the alarm goes on in virtual time
  began_s = MPI_Wtime();
  rings = 0;
  end("sleep", sleep(5) == 4 ? -1 : 0, EINTR);
  puts(wrong ? "failed" : "passed");
  fflush(stdout);
  if (argc > 1 && strcmp(argv[1], "executes") == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(1);
    execl("/proc/self/exe", argv[0], "killed", NULL);
  }
  MPI_Finalize();
  return wrong;
}
