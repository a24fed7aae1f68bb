#include "runtime/shim/affinity.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/thread_order.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

struct Setting {
  std::atomic<pthread_t> thread{};  // 0: free
  cpu_set_t cores{};
};

// A thread that finds no room has the host's answers.
constinit std::array<Setting, ipc::ThreadOrder::most_threads> settings{};
constinit std::atomic<bool> has_settings{false};

Setting* find(pthread_t thread) {
  if (!has_settings) return nullptr;
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [thread](const Setting& one) { return one.thread == thread; });
  return found == settings.end() ? nullptr : &*found;
}

void set(pthread_t thread, const cpu_set_t& cores) {
  has_settings = true;
  Setting* setting = find(thread);
  for (Setting& one : settings) {
    if (setting != nullptr) break;
    pthread_t none{};
    if (one.thread.compare_exchange_strong(none, thread)) setting = &one;
  }
  if (setting != nullptr) setting->cores = cores;
}

// Sets that are larger or smaller than usual are the host's.
void note_set(pthread_t thread, std::size_t bytes, const cpu_set_t* cores) {
  cpu_set_t given{};
  if (bytes > sizeof given) return;
  std::memcpy(&given, cores, bytes);
  set(thread, given);
}

bool show(pthread_t thread, std::size_t bytes, cpu_set_t* cores) {
  const Setting* const setting = find(thread);
  if (setting == nullptr || bytes < sizeof *cores) return false;
  std::memset(cores, 0, bytes);
  *cores = setting->cores;
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
  const Setting* const own = find(pthread_self());
  return own == nullptr ? std::nullopt : std::optional(own->cores);
}

void note_affinity(pthread_t thread, const std::optional<cpu_set_t>& cores) {
  if (cores) {
    set(thread, *cores);
  } else if (Setting* const before = find(thread); before != nullptr) {
    before->thread = pthread_t{};  // a thread that has ended had this name
  }
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
