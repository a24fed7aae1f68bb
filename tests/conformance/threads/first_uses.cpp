// first_uses WHAT FIRST LATE: both threads of rank 1 come to the first use of something; thread FIRST at
// once, the other one after an action and some computation, which takes long if LATE is 1. Then all threads
// exchange messages. Prints the clocks of rank 1 after the first use, and at the end.
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace {

std::string what;
int first;
int late;

void compute(long turns) {
  for (long turn = 0; turn < turns; ++turn) __asm__ volatile("");
}

struct Variable {
  Variable() {
    if (what == "sleeps") usleep(1000);
    compute(20'000'000);
  }
  int value = 1;
};

struct Throws {
  Throws() {
    static std::atomic<int> tries{0};
    compute(10'000'000);
    if (++tries == 1) throw 1;
  }
  int value = 1;
};

void use_first() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static std::once_flag flag;
  if (what == "once") {
    pthread_once(&once, [] { compute(20'000'000); });
  } else if (what == "call_once") {
    std::call_once(flag, [] { compute(20'000'000); });
  } else if (what == "throws") {
    for (bool is_there = false; !is_there;) {
      try {
        static Throws variable;
        is_there = variable.value == 1;
      } catch (int) {
      }
    }
  } else {
    static Variable variable;
    if (variable.value != 1) std::abort();
  }
}

struct Thread {
  MPI_Comm comm;
  int number;
  double used;
};

void* work(void* given) {
  auto& own = *static_cast<Thread*>(given);
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(own.comm, &rank);
  MPI_Comm_size(own.comm, &size);
  if (rank == 1) {
    if (own.number != first) {
      pthread_mutex_lock(&mutex);
      compute(late != 0 ? 100'000'000 : 100'000);
    }
    use_first();
  }
  if (what == "sleeps") own.used = MPI_Wtime();  // which moves the clock, so that no order shows any more
  std::array<int, 3000> out{};
  std::array<int, 3000> in{};
  for (int i = 0; i < 50; ++i) {
    const int count = i % 8 == 0 ? 3000 : 5;
    MPI_Sendrecv(out.data(), count, MPI_INT, (rank + 1) % size, i, in.data(), count, MPI_INT,
                 (rank + size - 1) % size, i, own.comm, MPI_STATUS_IGNORE);
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  what = argv[1];
  first = std::atoi(argv[2]);
  late = std::atoi(argv[3]);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  std::array<Thread, 2> threads{Thread{MPI_COMM_WORLD, 0, 0}, Thread{MPI_COMM_NULL, 1, 0}};
  MPI_Comm_dup(MPI_COMM_WORLD, &threads[1].comm);
  pthread_t second{};
  pthread_create(&second, nullptr, work, &threads[1]);
  work(threads.data());
  pthread_join(second, nullptr);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) {
    std::printf("%.9f %.9f %.9f\n", threads[0].used, threads[1].used, MPI_Wtime());
  }
  MPI_Comm_free(&threads[1].comm);
  MPI_Finalize();
}
