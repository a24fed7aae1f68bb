// Threads begin with the time of the thread that creates them (docs/internals/threads.md).
#include <dlfcn.h>
#include <pthread.h>
#include <threads.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <string_view>

#include "runtime/ipc/own_threads.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

bool is_of_any(const void* creator, std::initializer_list<std::string_view> libraries) {
  Dl_info info{};
  if (dladdr(creator, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path = info.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::any_of(libraries.begin(), libraries.end(),
                     [name](std::string_view library) { return name.starts_with(library); });
}

// Threads of an OpenMP library compute for the one that has created them, and wait for it by looking at
// memory: their time is the rank's.
bool computes_for_others(const void* creator) {
  return is_of_any(creator, {"libgomp", "libomp", "libiomp"});
}

// Threads of Open MPI's process manager and its event library, and of UCX. They talk to the launcher as the
// host lets them, and would move the rank's clock by a read or two more or less.
bool serves_library(const void* creator) {
  return is_of_any(creator, {"libpmix", "libevent", "libopen-pal", "libopen-rte", "mca_pmix", "libucs"});
}

// The threads of the process that serve a library, by their ids of the host. Further ones count as others.
constexpr std::size_t most_serving = 16;

std::array<std::atomic<std::int32_t>, most_serving>& serving_threads() {
  static constinit std::array<std::atomic<std::int32_t>, most_serving> value{};
  return value;
}

// Such a thread, while it lives.
class Service {
 public:
  Service() : place_(find_place()) {}
  ~Service() {
    if (place_ != nullptr) *place_ = 0;
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

 private:
  static std::atomic<std::int32_t>* find_place() {
    for (std::atomic<std::int32_t>& place : serving_threads()) {
      std::int32_t free = 0;
      if (place.compare_exchange_strong(free, ipc::own_thread_id())) return &place;
    }
    return nullptr;
  }
  std::atomic<std::int32_t>* place_;
};

template <typename Result>
struct Beginning {
  Result (*routine)(void*);
  void* argument;
  ipc::Client* client;
  ipc::ThreadClock* clock;  // nullptr: a thread that serves a library
};

// Its end, however it comes: by return, pthread_exit or cancellation.
class Life {
 public:
  Life(ipc::Client& client, ipc::ThreadClock& clock) : client_(client), clock_(clock) {
    client_.begin_thread(clock_);
  }
  ~Life() {
    if (!ipc::Client::is_fork()) client_.end_thread(clock_);
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

 private:
  ipc::Client& client_;
  ipc::ThreadClock& clock_;
};

template <typename Result>
Result begin(void* argument) {
  const auto* const given = static_cast<Beginning<Result>*>(argument);
  const Beginning<Result> beginning = *given;
  delete given;
  if (beginning.clock == nullptr) {
    reads_clock_free = true;
    const Service service;
    return beginning.routine(beginning.argument);
  }
  const Life life(*beginning.client, *beginning.clock);
  return beginning.routine(beginning.argument);
}

// Calls create(routine, argument), which returns 0 if it has created a thread.
template <typename Result, typename Create>
int create_thread(const void* creator, Result (*routine)(void*), void* argument, Create create) {
  const bool serves = serves_library(creator);
  ipc::Client* client = serves ? nullptr : virtual_client();
  ipc::ThreadClock* clock =
      client == nullptr || computes_for_others(creator) ? nullptr : client->create_thread();
  if (clock == nullptr && !serves) return create(routine, argument);
  auto beginning = std::make_unique<Beginning<Result>>(Beginning<Result>{routine, argument, client, clock});
  const int failed = create(begin<Result>, beginning.get());
  if (failed == 0) {
    static_cast<void>(beginning.release());  // the thread's now
  } else if (client != nullptr) {
    client->end_thread(*clock);
  }
  return failed;
}

}  // namespace
}  // namespace apenet::shim

APENET_EXPORT bool apenet_serves_library(std::int32_t thread) {
  const auto& serving = apenet::shim::serving_threads();
  return std::any_of(serving.begin(), serving.end(),
                     [thread](const std::atomic<std::int32_t>& one) { return one == thread; });
}

APENET_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                                 void* argument) noexcept {
  static const auto real =
      apenet::shim::next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
          "pthread_create");
  return apenet::shim::create_thread(
      __builtin_return_address(0), routine, argument,
      [&](void* (*begin)(void*), void* beginning) { return real(thread, attributes, begin, beginning); });
}

// The host's call interrupts only what may be cancelled in the host.
APENET_EXPORT int pthread_cancel(pthread_t thread) {
  static const auto real = apenet::shim::next<int (*)(pthread_t)>("pthread_cancel");
  const int error = real(thread);
  if (apenet::ipc::Client* client = apenet::shim::virtual_client()) client->note_cancel();
  return error;
}

APENET_EXPORT int thrd_create(thrd_t* thread, thrd_start_t routine, void* argument) {
  static const auto real = apenet::shim::next<int (*)(thrd_t*, thrd_start_t, void*)>("thrd_create");
  return apenet::shim::create_thread(
      __builtin_return_address(0), routine, argument,
      [&](thrd_start_t begin, void* beginning) { return real(thread, begin, beginning); });
}
