// The stack's limit counts what lies above the stack of main(), too. When a process lowers its limit, its
// stack has lost what was a small part of the limit before. So the shim first makes the stack as large as the
// program asks for: the host applies the limit only where the stack grows.
#include "runtime/shim/main_stack.hpp"

#include <alloca.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/ipc/address_space.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/shim/real.hpp"

// The C library's name for where the host has put the arguments of the program.
extern "C" void* __libc_stack_end;  // NOLINT(bugprone-reserved-identifier)

namespace apenet::shim {
namespace {

constexpr rlim_t most_unit = rlim_t{256} * 1024;

std::uintptr_t unit_of(rlim_t limit) {
  constexpr rlim_t least_unit = 4096;
  constexpr rlim_t share = 8;
  return std::clamp(std::bit_floor(limit / share), least_unit, most_unit);
}

rlim_t stack_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_STACK, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// The name of the program is the last that the host has put there, before 8 bytes.
std::uintptr_t upper_end() {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto name = static_cast<std::uintptr_t>(getauxval(AT_EXECFN));
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const std::uintptr_t end = name + std::strlen(reinterpret_cast<const char*>(name)) + 1 + sizeof(void*);
  return (end + page - 1) / page * page;
}

// A host that is older than Linux 5.0 lets the stack grow to no address far below the stack's pointer.
[[gnu::noinline]] void grow_to(std::uintptr_t lowest) {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const bool is_main_stack = here > lowest && here < upper_end();
  auto* const lowest_byte = static_cast<volatile char*>(
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      is_main_stack ? alloca(here - lowest) : reinterpret_cast<void*>(lowest));
  static_cast<void>(*lowest_byte);
}

void prepare_limit(rlim_t wanted) {
  const rlim_t before = stack_limit();
  if (wanted >= before || unit_of(wanted) == unit_of(before)) return;
  const auto stack = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
  const std::uintptr_t main = stack - stack % unit_of(before);
  const std::uintptr_t least = before == RLIM_INFINITY ? 0 : upper_end() - before;
  grow_to(std::max(main - wanted, least));
}

bool is_own_stack(pid_t process, __rlimit_resource resource) {
  return resource == RLIMIT_STACK && (process == 0 || process == getpid());
}

}  // namespace

std::size_t bytes_above_main(const void* frame) {
  return reinterpret_cast<std::uintptr_t>(frame) % unit_of(stack_limit());
}

void reserve_below_main(const void* frame) {
  constexpr std::uintptr_t given = std::uintptr_t{128} * 1024;  // Linux: below a new program's arguments
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const rlim_t limit = stack_limit();
  if (ipc::address_space().left_bytes() < 2 * given) return;
  const std::uintptr_t least = limit >= upper_end() ? 0 : upper_end() - limit + page;
  grow_to(std::max(reinterpret_cast<std::uintptr_t>(frame) - given, least));
}

// Looked up at each call: the thread sanitizer calls these before it can guard a static variable.
APENET_EXPORT int setrlimit(__rlimit_resource_t resource, const rlimit* limit) noexcept {
  const auto real = next<int (*)(__rlimit_resource_t, const rlimit*)>("setrlimit");
  if (resource == RLIMIT_STACK && ipc::is_readable(limit, sizeof *limit)) prepare_limit(limit->rlim_cur);
  return real(resource, limit);
}

APENET_EXPORT int setrlimit64(__rlimit_resource_t resource, const rlimit64* limit) noexcept {
  const auto real = next<int (*)(__rlimit_resource_t, const rlimit64*)>("setrlimit64");
  if (resource == RLIMIT_STACK && ipc::is_readable(limit, sizeof *limit)) prepare_limit(limit->rlim_cur);
  return real(resource, limit);
}

APENET_EXPORT int prlimit(pid_t process, __rlimit_resource resource, const rlimit* limit,
                          rlimit* before) noexcept {
  const auto real = next<int (*)(pid_t, __rlimit_resource, const rlimit*, rlimit*)>("prlimit");
  if (is_own_stack(process, resource) && ipc::is_readable(limit, sizeof *limit))
    prepare_limit(limit->rlim_cur);
  return real(process, resource, limit, before);
}

APENET_EXPORT int prlimit64(pid_t process, __rlimit_resource resource, const rlimit64* limit,
                            rlimit64* before) noexcept {
  const auto real = next<int (*)(pid_t, __rlimit_resource, const rlimit64*, rlimit64*)>("prlimit64");
  if (is_own_stack(process, resource) && ipc::is_readable(limit, sizeof *limit))
    prepare_limit(limit->rlim_cur);
  return real(process, resource, limit, before);
}

}  // namespace apenet::shim
