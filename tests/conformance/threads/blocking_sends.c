// Threads of each rank in blocking sends beyond what the interface injects, all at once.
//
//   blocking_sends HOW THREADS ROUNDS BYTES
//
// HOW: standard, synchronous, or collectives, which have such sends inside. Each thread prints when it ends,
// in virtual time.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_threads = 16 };

static int rank, size, rounds, bytes;
static const char* how;
static MPI_Comm communicators[most_threads];

static void send_round(int thread, char* out, char* in) {
  const int to = (rank + 1) % size;
  const int from = (rank + size - 1) % size;
  const int receives_first = (rank + thread) % 2;
  for (int step = 0; step < 2; ++step) {
    if (step == receives_first) {
      (strcmp(how, "synchronous") == 0 ? MPI_Ssend : MPI_Send)(out, bytes, MPI_CHAR, to, thread,
                                                               MPI_COMM_WORLD);
    } else {
      MPI_Recv(in, bytes, MPI_CHAR, from, thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  if (in[bytes - 1] != (char)(from * most_threads + thread)) exit(1);
}

static void meet(int round, MPI_Comm communicator, char* out, char* all) {
  MPI_Bcast(all, bytes, MPI_CHAR, round % size, communicator);
  MPI_Allgather(out, bytes, MPI_CHAR, all, bytes, MPI_CHAR, communicator);
  MPI_Gather(out, bytes, MPI_CHAR, all, bytes, MPI_CHAR, 0, communicator);
  MPI_Scatter(all, bytes, MPI_CHAR, out, bytes, MPI_CHAR, 0, communicator);
  MPI_Allreduce(out, all, bytes, MPI_CHAR, MPI_BOR, communicator);
}

static void* work(void* argument) {
  const int thread = *(const int*)argument;
  char* const out = malloc((size_t)bytes);
  char* const in = malloc((size_t)bytes * (size_t)size);
  memset(out, rank * most_threads + thread, (size_t)bytes);
  for (int round = 0; round < rounds; ++round) {
    if (strcmp(how, "collectives") == 0) {
      meet(round, communicators[thread], out, in);
    } else {
      send_round(thread, out, in);
    }
  }
  printf("rank %d, thread %d ends at %.9f\n", rank, thread, MPI_Wtime());
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 5 || level != MPI_THREAD_MULTIPLE) return 2;
  how = argv[1];
  const int threads = atoi(argv[2]);
  rounds = atoi(argv[3]);
  bytes = atoi(argv[4]);
  pthread_t ids[most_threads];
  int numbers[most_threads];
  for (int i = 0; i < threads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
  for (int i = 0; i < threads; ++i) {
    numbers[i] = i;
    pthread_create(&ids[i], NULL, work, &numbers[i]);
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  MPI_Finalize();
  return 0;
}
