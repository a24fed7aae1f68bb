// A program with threads, run under the shim with the provider loaded as by libfabric:
//   threads_program RANK native|mpi|sessions PROVIDER
// Some threads exchange messages, one reads clocks, one sleeps; with MPI, all of them call it. Two ranks.
#include <dlfcn.h>
#include <pthread.h>
#include <rdma/providers/fi_prov.h>
#include <sys/time.h>
#include <unistd.h>

#include <ctime>
#include <memory>
#include <string>

#include "runtime/threads/connection.hpp"

using Word = std::intptr_t;

extern "C" {
int MPI_Init_thread(Word argc, Word argv, Word required, Word provided);
int MPI_Finalize();
int MPI_Session_init(Word info, Word handler, Word session);
int MPI_Session_finalize(Word session);
int MPI_Isend(Word buffer, Word count, Word type, Word target, Word tag, Word communicator, Word request);
int MPI_Wait(Word request, Word status);
int MPI_Test(Word request, Word flag, Word status);
int MPI_Comm_dup(Word communicator, Word made);
int MPI_Comm_free(Word communicator);
int MPI_Comm_set_name(Word communicator, Word name);
int MPI_Win_lock(Word type, Word rank, Word assertion, Word window);
int MPI_Win_unlock(Word rank, Word window);
extern void (*fake_mpi_opens)();
}

namespace apenet::test {
namespace {

constexpr std::uint32_t talkers = 3;
enum class Start { natively, with_mpi, with_sessions };

template <typename Value>
Word at(Value& value) {
  return reinterpret_cast<Word>(&value);
}

class Fabric {
 public:
  explicit Fabric(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    require(library != nullptr, "the provider's library");
    auto* entry = reinterpret_cast<fi_provider* (*)()>(dlsym(library, "fi_prov_ini"));
    require(entry != nullptr, "fi_prov_ini");
    fi_provider* provider = entry();
    require(provider->getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &info_) == 0, "getinfo");
    require(provider->fabric(info_->fabric_attr, &fabric_, nullptr) == 0, "fabric");
    require(fi_domain(fabric_, info_, &domain_, nullptr) == 0, "fi_domain");
  }
  ~Fabric() { require(fi_close(&domain_->fid) == 0 && fi_close(&fabric_->fid) == 0, "fi_close"); }
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  [[nodiscard]] std::unique_ptr<Connection> connect() const {
    return std::make_unique<Connection>(domain_, info_);
  }

 private:
  fi_info* info_ = nullptr;  // kept: libfabric itself would free it
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
};

void call_mpi(Word communicator) {
  Word made = 0;
  Word request = 0;
  Word window = at(made);
  int flag = 0;
  require(MPI_Comm_dup(communicator, at(made)) == 0, "MPI_Comm_dup");
  MPI_Comm_set_name(made, reinterpret_cast<Word>("duplicate"));
  MPI_Isend(0, 0, 0, 1, 7, communicator, at(request));
  MPI_Test(at(request), at(flag), 0);
  MPI_Wait(at(request), 0);
  MPI_Win_lock(0, 1, 0, window);
  MPI_Win_unlock(1, window);
  MPI_Comm_free(at(made));
}

std::int64_t read_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

void read_clocks(const std::atomic<bool>& ended) {
  for (std::int64_t before = 0; !ended;) {
    const std::int64_t now = read_ns();
    require(now >= before, "a clock that does not go back");
    before = now;
    timeval date{};
    gettimeofday(&date, nullptr);
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    char name[64];
    gethostname(name, sizeof name);
  }
}

void sleep_often() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t before = read_ns();
    usleep(5);
    require(read_ns() - before >= 5000, "a sleep of 5 us");
    timespec deadline{};
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += 1000;
    pthread_mutex_lock(&mutex);
    require(pthread_cond_timedwait(&nobody, &mutex, &deadline) != 0, "a wait that runs out");
    pthread_mutex_unlock(&mutex);
  }
}

struct Card {
  Fabric fabric;
  std::unique_ptr<Connection> connection;

  explicit Card(const char* provider) : fabric(provider), connection(fabric.connect()) {}
};

const char* provider_path;
std::unique_ptr<Card> card;

void open_card() {
  card = std::make_unique<Card>(provider_path);
}

void live(std::uint32_t rank, Start start) {
  Connection* shared = card->connection.get();
  const fi_addr_t to = shared->insert(1 - rank);
  std::atomic<std::uint32_t> talking{talkers};
  std::atomic<bool> ended{false};
  in_threads(talkers + 2, [&](std::uint32_t thread) {
    Word session = 0;
    if (start == Start::with_sessions) MPI_Session_init(0, 0, at(session));
    if (start != Start::natively) {
      for (int i = 0; i < 20; ++i) call_mpi(at(ended));
    }
    if (thread == talkers) {
      read_clocks(ended);
    } else if (thread > talkers) {
      sleep_often();
    } else {
      exchange(*shared, rank, to, 1000 * thread);
      if (--talking == 0) ended = true;
    }
    if (start == Start::with_sessions) MPI_Session_finalize(at(session));
  });
}

}  // namespace
}  // namespace apenet::test

int main(int argc, char** argv) {
  using apenet::test::Start;
  apenet::test::require(argc == 4, "RANK START PROVIDER");
  const std::string how = argv[2];
  const Start start = how == "mpi"        ? Start::with_mpi
                      : how == "sessions" ? Start::with_sessions
                                          : Start::natively;
  int provided = 0;
  apenet::test::provider_path = argv[3];
  if (start == Start::with_mpi) {
    fake_mpi_opens = apenet::test::open_card;
    MPI_Init_thread(0, 0, 3, apenet::test::at(provided));
  } else {
    apenet::test::open_card();
  }
  apenet::test::live(static_cast<std::uint32_t>(std::stoul(argv[1])), start);
  apenet::test::card.reset();
  if (start == Start::with_mpi) MPI_Finalize();
  return 0;
}
