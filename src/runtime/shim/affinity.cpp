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
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

struct Setting {
  pid_t thread = 0;  // 0: free
  cpu_set_t cores{};
};

// A thread that finds none free has the host's answers.
struct Settings {
  std::atomic_flag lock;
  bool is_in_use = false;
  std::array<Setting, ipc::ThreadOrder::most_threads> all{};

  // 0: one that is free.
  Setting* find(pid_t thread) {
    if (!is_in_use) return nullptr;
    const auto found =
        std::find_if(all.begin(), all.end(), [thread](const Setting& one) { return one.thread == thread; });
    return found == all.end() ? nullptr : &*found;
  }
};

constinit Settings settings;

// The thread's id when it last made a copy of the process.
constinit thread_local pid_t id_before_fork __attribute__((tls_model("initial-exec"))) = 0;

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

void begin_fork() {
  id_before_fork = ipc::own_thread_id();
}

// The thread has another id in the child, where it is the only one.
void become_child() {
  settings.lock.clear();
  for (Setting& one : settings.all) one.thread = one.thread == id_before_fork ? ipc::own_thread_id() : 0;
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

// The host's id of a thread, which the C library tells by the clock of its processor time.
pid_t id_of(pthread_t thread) {
  clockid_t clock = 0;
  constexpr int type_bits = 3;
  return pthread_getcpuclockid(thread, &clock) == 0 ? ~(clock >> type_bits) : 0;
}

// The same of a thread by its number; 0: it is none of this process.
pid_t id_of_number(pid_t thread) {
  if (thread == 0) return ipc::own_thread_id();
  const int error = errno;
  const bool is_here = ipc::host_call(SYS_tgkill, getpid(), thread) == 0;
  errno = error;
  return is_here ? thread : 0;
}

// The entries of threads that have ended.
void free_ended() {
  for (Setting& one : settings.all) one.thread = id_of_number(one.thread);
}

void set(pid_t thread, const cpu_set_t& given) {
  static const int follows_forks = pthread_atfork(begin_fork, nullptr, become_child);
  static_cast<void>(follows_forks);
  const cpu_set_t cores = existing(given);
  const SettingsLock lock;
  settings.is_in_use = true;
  Setting* setting = settings.find(thread);
  if (setting == nullptr) setting = settings.find(0);
  if (setting == nullptr) {
    free_ended();
    setting = settings.find(0);
  }
  if (setting != nullptr) *setting = {.thread = thread, .cores = cores};
}

// Sets that are larger or smaller than usual are the host's.
void note_set(pid_t thread, std::size_t bytes, const cpu_set_t* cores) {
  cpu_set_t given{};
  if (bytes > sizeof given || thread == 0) return;
  std::memcpy(&given, cores, bytes);
  set(thread, given);
}

std::optional<cpu_set_t> setting_of(pid_t thread) {
  if (thread == 0) return {};
  const SettingsLock lock;
  const Setting* const setting = settings.find(thread);
  return setting == nullptr ? std::nullopt : std::optional(setting->cores);
}

bool show(pid_t thread, std::size_t bytes, cpu_set_t* cores) {
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
  return setting_of(ipc::own_thread_id());
}

void begin_with_affinity(const std::optional<cpu_set_t>& cores) {
  const pid_t own = ipc::own_thread_id();
  {
    const SettingsLock lock;
    // A thread that has ended may have had this number.
    if (Setting* const before = settings.find(own)) *before = {};
  }
  if (cores) set(own, *cores);
}

APENET_EXPORT int sched_setaffinity(pid_t thread, std::size_t bytes, const cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::sched_setaffinity)>("sched_setaffinity");
  const int result = real(thread, bytes, cores);
  if (result == 0) note_set(id_of_number(thread), bytes, cores);
  return result;
}

APENET_EXPORT int sched_getaffinity(pid_t thread, std::size_t bytes, cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::sched_getaffinity)>("sched_getaffinity");
  return show(id_of_number(thread), bytes, cores) ? 0 : real(thread, bytes, cores);
}

APENET_EXPORT int pthread_setaffinity_np(pthread_t thread, std::size_t bytes,
                                         const cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::pthread_setaffinity_np)>("pthread_setaffinity_np");
  const int error = real(thread, bytes, cores);
  if (error == 0) note_set(id_of(thread), bytes, cores);
  return error;
}

APENET_EXPORT int pthread_getaffinity_np(pthread_t thread, std::size_t bytes, cpu_set_t* cores) noexcept {
  static const auto real = next<decltype(&::pthread_getaffinity_np)>("pthread_getaffinity_np");
  return show(id_of(thread), bytes, cores) ? 0 : real(thread, bytes, cores);
}

}  // namespace apenet::shim
