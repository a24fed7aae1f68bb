// Threads begin with the time of the thread that creates them (docs/internals/threads.md).
#include <dlfcn.h>
#include <pthread.h>
#include <threads.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/shim/affinity.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/memory_watchers.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/sent_signals.hpp"

namespace apenet::shim {
namespace {

using ipc::OrderedThread;
using ipc::ThreadOrder;

// A process of the run that is or may become a rank, or one of its order.
bool may_be_rank() {
  return ipc::Client::run_made_at_s() != 0 && (!ipc::Client::is_fork() || ipc::Client::is_member());
}

bool is_of_any(const void* creator, std::initializer_list<std::string_view> libraries) {
  Dl_info info{};
  if (dladdr(creator, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path = info.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::any_of(libraries.begin(), libraries.end(),
                     [name](std::string_view library) { return name.starts_with(library); });
}

// Threads of an OpenMP library compute for the one that has created them, and wait for it by polling
// memory: their time is the rank's.
bool computes_for_others(const void* creator) {
  return is_of_any(creator, {"libgomp", "libomp", "libiomp"});
}

// Threads of Open MPI's process manager and its event library, and of UCX. They talk to the launcher as the
// host lets them, and would move the rank's clock by a read or two more or less.
bool serves_library(const void* creator) {
  return is_of_any(creator, {"libpmix", "libevent", "libopen-pal", "libopen-rte", "mca_pmix", "libucs"});
}

// Threads of a GPU's driver wait for their device in the host's time (host_caller.hpp).
bool drives_device(const void* creator) {
  return is_of_any(creator, {"libcuda.so", "libnvidia-"});
}

// A progress thread of an MPI library itself; those beside it (libmpicxx, a profiler) make threads of other
// kinds.
bool progresses_messages(const void* creator) {
  return is_of_any(creator, {"libmpi.so", "libmpich.so"});
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
  ipc::OrderedThread* entry;  // nullptr: it is not ordered
  bool serves_library;
  std::optional<cpu_set_t> cores;
  std::shared_ptr<std::atomic<bool>> has_cores;  // set when the thread has begun with them; nullptr: none
};

// In how many rounds the C library still calls the destructors of a thread's keys before the life ends. The
// last round of all belongs to the sanitizers, which end their own there.
constinit thread_local int rounds_left = PTHREAD_DESTRUCTOR_ITERATIONS - 2;

void end_life(void* entry);

pthread_key_t life_key() {
  static const pthread_key_t value = [] {
    pthread_key_t key{};
    if (pthread_key_create(&key, end_life) != 0)
      ipc::Client::refuse("the process has used all keys of threads' own data: expected a free one");
    return key;
  }();
  return value;
}

void hold_life(void* entry) {
  if (pthread_setspecific(life_key(), entry) != 0)
    ipc::Client::refuse("there is no memory for a key of a thread's own data: expected some");
}

void end_in_order(OrderedThread& own) {
  if (ipc::Client::is_fork() && !ipc::Client::is_member()) return;
  ThreadOrder& order = thread_order();
  order.enter(own);
  order.wake(&own, UINT32_MAX, &own);
  order.end(own);
}

// However the thread ends: by return, pthread_exit or cancellation. The destructors of its own data
// (thread_local, tss_create) act, too, so its life in the order ends in their last round but one.
void end_life(void* entry) {
  if (rounds_left-- > 0) {
    hold_life(entry);
    return;
  }
  end_in_order(*static_cast<OrderedThread*>(entry));
}

template <typename Result>
Result begin(void* argument) {
  const auto* const given = static_cast<Beginning<Result>*>(argument);
  const Beginning<Result> beginning = *given;
  delete given;
  begin_with_affinity(beginning.cores);
  if (beginning.has_cores) beginning.has_cores->store(true);
  catch_direct_calls();
  if (beginning.entry == nullptr) {
    is_unordered = true;
    reads_clock_free = beginning.serves_library;
    std::optional<Service> service;
    if (beginning.serves_library) service.emplace();
    return beginning.routine(beginning.argument);
  }
  hold_life(beginning.entry);
  thread_order().begin(*beginning.entry);
  return beginning.routine(beginning.argument);
}

[[noreturn]] void refuse_thread() {
  ipc::Client::refuse(
      "the rank has more than " + std::to_string(ThreadOrder::most_threads) +
      " threads at a time: expected so many at most, each of which has its place in the order");
}

// Calls create(routine, argument), which returns 0 if it has created `thread`.
template <typename Result, typename Create>
int create_thread(const pthread_t* thread, const void* creator, const std::optional<cpu_set_t>& cores,
                  Result (*routine)(void*), void* argument, Create create) {
  follow_direct_calls();
  const bool serves = serves_library(creator);
  const bool is_ordered =
      !serves && !computes_for_others(creator) && !drives_device(creator) && may_be_rank();
  OrderedThread* const own = is_ordered ? enter_order() : nullptr;
  if (is_ordered) find_memory_watchers();
  const auto act = [&] {
    OrderedThread* const entry = is_ordered ? thread_order().create(own) : nullptr;
    if (is_ordered && entry == nullptr) refuse_thread();
    if (entry != nullptr) entry->lives_in_call = progresses_messages(creator);
    const auto has_cores = cores ? std::make_shared<std::atomic<bool>>(false) : nullptr;
    auto beginning = std::make_unique<Beginning<Result>>(
        Beginning<Result>{routine, argument, entry, serves, cores, has_cores});
    const int failed = create(begin<Result>, beginning.get());
    resume_watch_of_calls();
    if (failed == 0) {
      static_cast<void>(beginning.release());                                  // the thread's now
      while (has_cores && !*has_cores) ipc::host_call(SYS_sched_yield, 0, 0);  // the creator may ask for them
      if (entry != nullptr) thread_order().note_identity(*entry, *thread);
    } else if (entry != nullptr) {
      thread_order().end(*entry);
    }
    return failed;
  };
  if (own == nullptr) return act();
  const OrderedAction action(*own);
  return act();
}

}  // namespace

void end_own_life() {
  if (OrderedThread* const own = ordered_thread()) end_in_order(*own);
}

APENET_EXPORT bool apenet_serves_library(std::int32_t thread) {
  const auto& serving = serving_threads();
  return std::any_of(serving.begin(), serving.end(),
                     [thread](const std::atomic<std::int32_t>& one) { return one == thread; });
}

APENET_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                                 void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = next<Create>("pthread_create");
  static constinit thread_local bool is_creating = false;
  // A library that has this function, too, and has found the shim's behind its own (symbol_lookups.cpp).
  if (is_creating) {
    static const auto last = reinterpret_cast<Create>(c_library_symbol("pthread_create"));
    return last(thread, attributes, routine, argument);
  }
  return create_thread(thread, __builtin_return_address(0), affinity_to_inherit(attributes), routine,
                       argument, [&](void* (*begin)(void*), void* beginning) {
                         is_creating = true;
                         const int error = real(thread, attributes, begin, beginning);
                         is_creating = false;
                         return error;
                       });
}

// The host's call interrupts only what may be cancelled in the host.
APENET_EXPORT int pthread_cancel(pthread_t thread) {
  static const auto real = next<int (*)(pthread_t)>("pthread_cancel");
  ipc::OrderedThread* const own = ordered_thread();
  const auto cancel = [&] {
    const int error = real(thread);
    if (thread_order().in_use()) thread_order().cancel(thread, own);
    return error;
  };
  if (own == nullptr) return cancel();
  const OrderedAction action(*own);
  return cancel();
}

// The thread's wait ends at the time of the call.
APENET_EXPORT int pthread_kill(pthread_t thread, int signal) noexcept {
  static const auto real = next<int (*)(pthread_t, int)>("pthread_kill");
  ipc::OrderedThread* const own = ordered_thread();
  if (own == nullptr || signal == 0) return real(thread, signal);
  if (stops_own_process(signal)) return kill(getpid(), signal) == 0 ? 0 : errno;
  const OrderedAction action(*own);
  thread_order().announce(thread, signal, *own);
  const int error = real(thread, signal);
  struct sigaction handling {};
  const bool is_handled = sigaction(signal, nullptr, &handling) == 0 && handling.sa_handler != SIG_IGN &&
                          handling.sa_handler != SIG_DFL;
  if (error == 0 && is_handled) thread_order().ask(thread, signal, *own);
  thread_order().announce(thread, 0, *own);
  return error;
}

APENET_EXPORT int thrd_create(thrd_t* thread, thrd_start_t routine, void* argument) {
  static const auto real = next<int (*)(thrd_t*, thrd_start_t, void*)>("thrd_create");
  return create_thread(thread, __builtin_return_address(0), affinity_to_inherit(nullptr), routine, argument,
                       [&](thrd_start_t begin, void* beginning) { return real(thread, begin, beginning); });
}

}  // namespace apenet::shim
