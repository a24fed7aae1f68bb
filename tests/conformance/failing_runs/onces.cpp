// onces WHAT: initialisations by pthread_once and std::call_once that wait for each other for ever, or are
// begun anew ("thrown", "forked").
#include <mpi.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace {

pthread_once_t first_once = PTHREAD_ONCE_INIT, second_once = PTHREAD_ONCE_INIT;
std::once_flag flag;
std::array<std::once_flag, 70> many;
std::mutex mutex;

void nothing() {}

template <typename Function>
void in_thread(Function function) {
  std::thread thread(function);
  thread.join();
}

void of_thread() {
  pthread_once(&first_once, [] { in_thread([] { pthread_once(&first_once, nothing); }); });
}
void call_of_thread() {
  std::call_once(flag, [] { in_thread([] { std::call_once(flag, nothing); }); });
}
void itself() {
  pthread_once(&first_once, itself);
}
void crossed() {
  std::thread other([] {
    pthread_once(&second_once, [] {
      usleep(1000);
      pthread_once(&first_once, nothing);
    });
  });
  pthread_once(&first_once, [] {
    usleep(1000);
    pthread_once(&second_once, nothing);
  });
  other.join();
}
void with_lock() {
  mutex.lock();
  std::thread other([] { std::call_once(flag, [] { mutex.lock(); }); });
  usleep(1000);
  std::call_once(flag, nothing);
  other.join();
}
void with_message() {
  std::thread other([] {
    std::call_once(flag, [] { MPI_Recv(nullptr, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); });
  });
  usleep(1000);
  std::call_once(flag, nothing);
  other.join();
}
// More than the shim keeps.
void nested(std::size_t depth) {
  if (depth < many.size())
    std::call_once(many[depth], nested, depth + 1);
  else
    in_thread([] { std::call_once(many.back(), nothing); });
}
void thrown() {
  try {
    std::call_once(flag, [] {
      in_thread(nothing);
      throw 1;
    });
  } catch (int) {
  }
  in_thread([] { std::call_once(flag, [] { std::printf("again\n"); }); });
}
// A child begins anew what its parent had begun.
void forked() {
  pthread_once(&first_once, [] {
    const pid_t child = fork();
    if (child == 0) {
      pthread_once(&first_once, [] { std::printf("again\n"); });
      std::fflush(stdout);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  });
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const std::map<std::string, void (*)()> cases = {
      {"of-thread", of_thread},
      {"call-of-thread", call_of_thread},
      {"itself", itself},
      {"crossed", crossed},
      {"with-lock", with_lock},
      {"with-message", with_message},
      {"thrown", thrown},
      {"forked", forked},
      {"nested", [] { nested(0); }},
  };
  cases.at(argv[1])();
  MPI_Finalize();
  return 0;
}
