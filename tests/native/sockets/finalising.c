/* Threads beside MPI_Finalize. `serve`: rank 0 serves a socket of rank 1 in a thread, in MPI_Finalize and
 * after it. `accept`, `tick`: a thread of each rank waits for a connection that never comes, or sleeps again
 * and again. */
#include <mpi.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { port = 70, questions = 20, ticks = 2000 };

static int listener;

static void* serve(void* unused) {
  const int asks = accept(listener, NULL, NULL);
  int served = 0;
  char letter;
  while (read(asks, &letter, 1) == 1 && write(asks, &letter, 1) == 1) ++served;
  printf("served %d\n", served);
  close(asks);
  return unused;
}

static void* tick(void* unused) {
  for (int i = 0; i < ticks; ++i) usleep(50);
  return unused;
}

static void listen_here(void) {
  const struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
  listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (const struct sockaddr*)&here, sizeof here) != 0 || listen(listener, 1) != 0)
    perror("listen");
}

static void ask(void) {
  struct addrinfo* server;
  const int asks = socket(AF_INET, SOCK_STREAM, 0);
  if (getaddrinfo("node0", "70", NULL, &server) != 0 ||
      connect(asks, server->ai_addr, server->ai_addrlen) != 0)
    perror("connect");
  char letter = 'a';
  for (int i = 0; i < questions; ++i) {
    if (write(asks, &letter, 1) != 1 || read(asks, &letter, 1) != 1) perror("ask");
    usleep(100);
  }
  close(asks);
  freeaddrinfo(server);
}

int main(int argc, char** argv) {
  int level;
  int rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int serves = strcmp(argv[1], "serve") == 0;
  pthread_t thread;
  if (strcmp(argv[1], "tick") == 0) {
    pthread_create(&thread, NULL, tick, NULL);
  } else if (!serves || rank == 0) {
    listen_here();
    pthread_create(&thread, NULL, serve, NULL);
  }
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("barriers took %.3f us\n", MPI_Wtime() * 1e6);
  if (serves && rank == 1) ask();
  MPI_Finalize();
  if (serves && rank == 0) pthread_join(thread, NULL);
  fflush(stdout);
  _exit(0);
}
