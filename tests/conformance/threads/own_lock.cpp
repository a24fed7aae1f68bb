// Two threads of each rank take a lock that waits by a futex of its own, and send.
#include <linux/futex.h>
#include <mpi.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace {

std::atomic<int> lock_word{0};  // 1: taken, 2: others wait

void take() {
  int before = 0;
  if (lock_word.compare_exchange_strong(before, 1)) return;
  while (lock_word.exchange(2) != 0) syscall(SYS_futex, &lock_word, FUTEX_WAIT_PRIVATE, 2, nullptr);
}

void give() {
  lock_word = 0;
  syscall(SYS_futex, &lock_word, FUTEX_WAKE_PRIVATE, 1);
}

void* work(void* comm) {
  int rank = 0;
  MPI_Comm_rank(*static_cast<MPI_Comm*>(comm), &rank);
  for (int i = 0; i < 10; ++i) {
    take();
    for (int turn = 0; turn < 20'000; ++turn) __asm__ volatile("");
    give();
    MPI_Sendrecv_replace(&i, 1, MPI_INT, 1 - rank, 0, 1 - rank, 0, *static_cast<MPI_Comm*>(comm),
                         MPI_STATUS_IGNORE);
  }
  return nullptr;
}

}  // namespace

// own_lock one|two: in so many threads.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool has_two = std::strcmp(argv[1], "two") == 0;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm first = MPI_COMM_WORLD;
  MPI_Comm second = MPI_COMM_NULL;
  MPI_Comm_dup(first, &second);
  pthread_t thread{};
  if (has_two) pthread_create(&thread, nullptr, work, &second);
  work(&first);
  if (has_two) pthread_join(thread, nullptr);
  MPI_Comm_free(&second);
  MPI_Finalize();
}
