// std::async, promises and a condition variable of the C++ library.
#include <mpi.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  using std::chrono::milliseconds;
  int provided = 0, rank = 0, size = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::mutex mutex;
  std::condition_variable condition;
  int ready = 0;
  std::vector<std::future<int>> futures;
  for (int i = 0; i < 4; ++i) {
    futures.push_back(std::async(std::launch::async, [&, i] {
      std::this_thread::sleep_for(milliseconds(10 * (4 - i)));
      int in = -1;
      MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, i, &in, 1, MPI_INT, (rank + size - 1) % size, i,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const std::lock_guard<std::mutex> guard(mutex);
      ++ready;
      std::printf("rank %d: task %d is number %d at %.3f\n", rank, i, ready, MPI_Wtime());
      condition.notify_all();
      return 100 * ready + in;
    }));
  }
  {
    std::unique_lock<std::mutex> guard(mutex);
    const bool is_early = condition.wait_for(guard, milliseconds(25), [&] { return ready == 4; });
    std::printf("rank %d: %d ready, %s at %.3f\n", rank, ready, is_early ? "all" : "not all", MPI_Wtime());
  }
  int sum = 0;
  for (auto& future : futures) sum += future.get();
  std::printf("rank %d: sum %d at %.3f\n", rank, sum, MPI_Wtime());
  MPI_Finalize();
}
