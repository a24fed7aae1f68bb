#include "runtime/shim/affinity.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/ipc/thread_order.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// A thread, as the C library and as the host names it. 0: not known.
struct ThreadName {
  pthread_t thread{};
  pid_t id = 0;
  [[nodiscard]] bool is_of(const ThreadName& other) const {
    return (thread != 0 && thread == other.thread) || (id != 0 && id == other.id);
  }
};

struct Setting {
  ThreadName name;  // none: free
  cpu_set_t cores{};
};

// A thread that finds no room has the host's answers.
struct Settings {
  std::atomic_flag lock;
  bool is_in_use = false;
  std::array<Setting, ipc::ThreadOrder::most_threads> all{};

  Setting* find(const ThreadName& name) {
    if (!is_in_use) return nullptr;
    const auto found =
        std::find_if(all.begin(), all.end(), [&name](const Setting& one) { return one.name.is_of(name); });
    return found == all.end() ? nullptr : &*found;
  }
  Setting* find_free() {
    const auto found = std::find_if(
        all.begin(), all.end(), [](const Setting& one) { return one.name.thread == 0 && one.name.id == 0; });
    return found == all.end() ? nullptr : &*found;
  }
};

constinit Settings settings;

// Others hold it for some copies only.
class SettingsLock {
 public:
  SettingsLock() {
    while (settings.lock.test_and_set(std::memory_order_acquire)) continue;
  }
  ~SettingsLock() { settings.lock.clear(std::memory_order_release); }
  SettingsLock(const SettingsLock&) = delete;
  SettingsLock& operator=(const SettingsLock&) = delete;
};

void free_after_fork() {
  settings.lock.clear();
}

// As the host has it: the cores that exist.
cpu_set_t existing(const cpu_set_t& given) {
  static const long count = std::min<long>(sysconf(_SC_NPROCESSORS_CONF), CPU_SETSIZE);
  cpu_set_t cores{};
  for (long i = 0; i < count; ++i) {
    if (CPU_ISSET(i, &given)) CPU_SET(i, &cores);
  }
  return cores;
}

ThreadName own_name() {
  return {.thread = pthread_self(), .id = ipc::own_thread_id()};
}

ThreadName name_of(pthread_t thread) {
  if (pthread_equal(thread, pthread_self()) != 0) return own_name();
  const ipc::OrderedThread* const ordered = thread_order().find(thread);
  return {.thread = thread, .id = ordered == nullptr ? 0 : ordered->id.load()};
}

// A name of nothing if it is no thread of this process.
ThreadName name_of(pid_t thread) {
  if (thread == 0 || thread == ipc::own_thread_id()) return own_name();
  const int error = errno;
  const bool is_here = ipc::host_call(SYS_tgkill, getpid(), thread) == 0;
  errno = error;
  return {.thread = {}, .id = is_here ? thread : 0};
}

void set(const ThreadName& thread, const cpu_set_t& given) {
  static const int reset_in_children = pthread_atfork(nullptr, nullptr, free_after_fork);
  static_cast<void>(reset_in_children);
  const cpu_set_t cores = existing(given);
  const SettingsLock lock;
  settings.is_in_use = true;
  Setting* setting = settings.find(thread);
  if (setting == nullptr) setting = settings.find_free();
  if (setting == nullptr) return;
  setting->cores = cores;
  if (thread.thread != 0) setting->name.thread = thread.thread;
  if (thread.id != 0) setting->name.id = thread.id;
}

// Sets that are larger or smaller than usual are the host's.
void note_set(const ThreadName& thread, std::size_t bytes, const cpu_set_t* cores) {
  cpu_set_t given{};
  if (bytes > sizeof given || (thread.thread == 0 && thread.id == 0)) return;
  std::memcpy(&given, cores, bytes);
  set(thread, given);
}

std::optional<cpu_set_t> setting_of(const ThreadName& thread) {
  const SettingsLock lock;
  const Setting* const setting = settings.find(thread);
  return setting == nullptr ? std::nullopt : std::optional(setting->cores);
}

bool show(const ThreadName& thread, std::size_t bytes, cpu_set_t* cores) {
  if (bytes < sizeof *cores) return false;
  const std::optional<cpu_set_t> known = setting_of(thread);
  // The host reports memory that is none.
  if (!known || !ipc::copy_out(cores, &*known, sizeof *known)) return false;
  std::memset(cores + 1, 0, bytes - sizeof *cores);
  return true;
}

}  // namespace

std::optional<cpu_set_t> affinity_to_inherit(const pthread_attr_t* attributes) {
  cpu_set_t cores;
  if (attributes != nullptr && pthread_attr_getaffinity_np(attributes, sizeof cores, &cores) == 0 &&
      CPU_COUNT(&cores) < CPU_SETSIZE)  // all: none was set
    return cores;
  return setting_of(own_name());
}

void begin_with_affinity(const std::optional<cpu_set_t>& cores) {
  const ThreadName own = own_name();
  {
    const SettingsLock lock;
    // Threads that have ended may have had these names.
    while (Setting* const before = settings.find(own)) *before = {};
  }
  if (cores) set(own, *cores);
}

APENET_EXPORT int sched_setaffinity(pid_t thread, std::size_t bytes, const cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::sched_setaffinity)>("sched_setaffinity");
  const int result = real(thread, bytes, cores);
  if (result == 0) note_set(name_of(thread), bytes, cores);
  return result;
}

APENET_EXPORT int sched_getaffinity(pid_t thread, std::size_t bytes, cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::sched_getaffinity)>("sched_getaffinity");
  return show(name_of(thread), bytes, cores) ? 0 : real(thread, bytes, cores);
}

APENET_EXPORT int pthread_setaffinity_np(pthread_t thread, std::size_t bytes,
                                         const cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::pthread_setaffinity_np)>("pthread_setaffinity_np");
  const int error = real(thread, bytes, cores);
  if (error == 0) note_set(name_of(thread), bytes, cores);
  return error;
}

APENET_EXPORT int pthread_getaffinity_np(pthread_t thread, std::size_t bytes, cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::pthread_getaffinity_np)>("pthread_getaffinity_np");
  return show(name_of(thread), bytes, cores) ? 0 : real(thread, bytes, cores);
}

}  // namespace apenet::shim
