#include "runtime/shim/affinity.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/ipc/thread_order.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

struct Setting {
  pthread_t thread{};  // 0: free
  cpu_set_t cores{};
};

// A thread that finds no room has the host's answers.
struct Settings {
  std::atomic_flag lock;
  bool is_in_use = false;
  std::array<Setting, ipc::ThreadOrder::most_threads> all{};

  Setting* find(pthread_t thread) {
    if (!is_in_use) return nullptr;
    const auto found =
        std::find_if(all.begin(), all.end(), [thread](const Setting& one) { return one.thread == thread; });
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

void set(pthread_t thread, const cpu_set_t& given) {
  static const int reset_in_children = pthread_atfork(nullptr, nullptr, free_after_fork);
  static_cast<void>(reset_in_children);
  const cpu_set_t cores = existing(given);
  const SettingsLock lock;
  settings.is_in_use = true;
  Setting* setting = settings.find(thread);
  if (setting == nullptr) setting = settings.find(pthread_t{});
  if (setting != nullptr) *setting = {.thread = thread, .cores = cores};
}

// Sets that are larger or smaller than usual are the host's.
void note_set(pthread_t thread, std::size_t bytes, const cpu_set_t* cores) {
  cpu_set_t given{};
  if (bytes > sizeof given) return;
  std::memcpy(&given, cores, bytes);
  set(thread, given);
}

std::optional<cpu_set_t> setting_of(pthread_t thread) {
  const SettingsLock lock;
  const Setting* const setting = settings.find(thread);
  return setting == nullptr ? std::nullopt : std::optional(setting->cores);
}

bool show(pthread_t thread, std::size_t bytes, cpu_set_t* cores) {
  if (bytes < sizeof *cores) return false;
  const std::optional<cpu_set_t> known = setting_of(thread);
  // The host reports memory that is none.
  if (!known || !ipc::copy_out(cores, &*known, sizeof *known)) return false;
  std::memset(cores + 1, 0, bytes - sizeof *cores);
  return true;
}

// Threads are known by their pthread_t: of those that a number names, only the calling one.
bool is_own(pid_t thread) {
  return thread == 0 || thread == ipc::own_thread_id();
}

}  // namespace

std::optional<cpu_set_t> affinity_to_inherit(const pthread_attr_t* attributes) {
  cpu_set_t cores;
  if (attributes != nullptr && pthread_attr_getaffinity_np(attributes, sizeof cores, &cores) == 0 &&
      CPU_COUNT(&cores) < CPU_SETSIZE)  // all: none was set
    return cores;
  return setting_of(pthread_self());
}

void begin_with_affinity(const std::optional<cpu_set_t>& cores) {
  if (cores) return set(pthread_self(), *cores);
  const SettingsLock lock;
  // A thread that has ended may have had this name.
  if (Setting* const before = settings.find(pthread_self()); before != nullptr) *before = {};
}

APENET_EXPORT int sched_setaffinity(pid_t thread, std::size_t bytes, const cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::sched_setaffinity)>("sched_setaffinity");
  const int result = real(thread, bytes, cores);
  if (result == 0 && is_own(thread)) note_set(pthread_self(), bytes, cores);
  return result;
}

APENET_EXPORT int sched_getaffinity(pid_t thread, std::size_t bytes, cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::sched_getaffinity)>("sched_getaffinity");
  return is_own(thread) && show(pthread_self(), bytes, cores) ? 0 : real(thread, bytes, cores);
}

APENET_EXPORT int pthread_setaffinity_np(pthread_t thread, std::size_t bytes,
                                         const cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::pthread_setaffinity_np)>("pthread_setaffinity_np");
  const int error = real(thread, bytes, cores);
  if (error == 0) note_set(thread, bytes, cores);
  return error;
}

APENET_EXPORT int pthread_getaffinity_np(pthread_t thread, std::size_t bytes, cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::pthread_getaffinity_np)>("pthread_getaffinity_np");
  return show(thread, bytes, cores) ? 0 : real(thread, bytes, cores);
}

}  // namespace apenet::shim
