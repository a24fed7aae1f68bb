#include "runtime/shim/direct_code.hpp"

#if !defined(__x86_64__)

// Nothing is caught there.
bool apenet::shim::find_direct_code() {
  return false;
}

#else

#include <emmintrin.h>
#include <link.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace apenet::shim {
namespace {

using Code = std::span<const std::uint8_t>;

// The first one that is found ends the search, so a rank scans all of its code once at most. Larger
// objects are taken for what they are: frameworks that use the C library.
constexpr std::size_t most_code_bytes = std::size_t{128} << 20U;

struct CodeRange {
  std::atomic<std::uint64_t> begin{0};
  std::atomic<std::uint64_t> end{0};
};

struct CodeObjects {
  std::array<CodeRange, 64> passed{};
  std::atomic<std::size_t> passed_count{0};
  // The list of the loader's objects, as far as it is known.
  unsigned long long added = 0;
  unsigned long long removed = 0;
  std::size_t known = 0;
  std::atomic<bool> is_direct{false};
  std::array<char, 96> name{};
};

// Written only under the loader's lock, which dl_iterate_phdr() takes.
constinit CodeObjects code_objects;

constexpr auto timed_calls = std::to_array<std::uint32_t>({
    SYS_poll,
    SYS_select,
    SYS_sched_yield,
    SYS_pause,
    SYS_nanosleep,
    SYS_getitimer,
    SYS_alarm,
    SYS_setitimer,
    SYS_clone,
    SYS_fork,
    SYS_vfork,
    SYS_execve,
    SYS_wait4,
    SYS_gettimeofday,
    SYS_getrusage,
    SYS_times,
    SYS_flock,
    SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend,
    SYS_time,
    SYS_futex,
    SYS_epoll_create,
    SYS_semtimedop,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_exit_group,
    SYS_epoll_wait,
    SYS_mq_timedsend,
    SYS_mq_timedreceive,
    SYS_waitid,
    SYS_pselect6,
    SYS_ppoll,
    SYS_epoll_pwait,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_execveat,
    SYS_clone3,
    SYS_epoll_pwait2,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_futex_waitv,
});

std::uint32_t word_at(Code code, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, code.data() + at, sizeof word);
  return word;
}

bool has_bytes(Code code, std::size_t at, std::span<const std::uint8_t> bytes) {
  return at + bytes.size() <= code.size() &&
         std::equal(bytes.begin(), bytes.end(), code.begin() + static_cast<std::ptrdiff_t>(at));
}

template <typename... Bytes>
bool has(Code code, std::size_t at, Bytes... bytes) {
  const std::array<std::uint8_t, sizeof...(Bytes)> wanted{static_cast<std::uint8_t>(bytes)...};
  return has_bytes(code, at, wanted);
}

// Whether the two bytes are the end of a number or distance in another instruction.
bool is_in_operand(Code code, std::size_t at) {
  const std::uint8_t before = code[at - 1];
  if (before >= 0xb8 && before <= 0xbf) return true;                          // mov $0x50f, register
  if (code[at - 2] == 0x0f && before >= 0x80 && before <= 0x8f) return true;  // conditional jump
  for (std::size_t back = 1; back <= 3; ++back) {                             // lea distance(%rip)
    if ((code[at - back] & 0xc7U) == 0x05 && code[at - back - 1] == 0x8d) return true;
  }
  return false;
}

// The check of a result in functions for any call: `cmp $-4095`, return, or the store of an inline function.
bool is_checked(Code code, std::size_t at) {
  const std::size_t next = at + 2;
  for (const unsigned low : {0x00U, 0x01U}) {
    if (has(code, next, 0x48, 0x3d, low, 0xf0, 0xff, 0xff) || has(code, next, 0x3d, low, 0xf0, 0xff, 0xff))
      return true;
  }
  if (has(code, next, 0xc3) || has(code, next, 0x48, 0x85, 0xc0)) return true;
  if (next + 3 > code.size() || code[next + 1] != 0x89 || (code[next] != 0x48 && code[next] != 0x49))
    return false;
  const std::uint8_t to = code[next + 2];
  return (to >= 0xc0 && to <= 0xc7) ||
         (code[next] == 0x48 && (to == 0x45 || to == 0x85 || to == 0x44 || to == 0x84));
}

// Whether the bytes 0f 05 there are a `syscall` of the program's on which time may depend.
bool is_direct_call(Code code, std::size_t at) {
  constexpr std::size_t most_before = 24;
  constexpr std::uint32_t no_call = 600;
  if (at < most_before || is_in_operand(code, at)) return false;
  if (has(code, at - 7, 0x0f, 0x1f, 0x80, 0x6e, 0x65, 0x70, 0x61)) return false;  // APENET_OWN_CALL
  std::uint32_t number = no_call;
  for (std::size_t from = at - most_before; from + 5 <= at; ++from) {
    std::uint32_t loaded = no_call;
    if (code[from] == 0xb8) loaded = word_at(code, from + 1);  // mov $number, %eax
    if (from + 7 <= at && has(code, from, 0x48, 0xc7, 0xc0)) loaded = word_at(code, from + 3);
    if (loaded < no_call) number = loaded;
  }
  if (number == no_call) return is_checked(code, at);
  return std::find(timed_calls.begin(), timed_calls.end(), number) != timed_calls.end();
}

bool has_direct_call(Code code) {
  constexpr std::size_t step = sizeof(__m128i);
  const __m128i first = _mm_set1_epi8(0x0f);
  const __m128i second = _mm_set1_epi8(0x05);
  for (std::size_t at = 0; at + step < code.size(); at += step) {
    const auto load = [&](std::size_t from) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(code.data() + from));
    };
    const __m128i both = _mm_and_si128(_mm_cmpeq_epi8(load(at), first), _mm_cmpeq_epi8(load(at + 1), second));
    for (int hits = _mm_movemask_epi8(both); hits != 0; hits &= hits - 1) {
      if (is_direct_call(code, at + static_cast<std::size_t>(__builtin_ctz(static_cast<unsigned>(hits)))))
        return true;
    }
  }
  return false;
}

bool starts_with_any(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [name](std::string_view one) { return name.starts_with(one); });
}

bool is_passed_object(std::string_view name) {
  constexpr auto passed = std::to_array<std::string_view>(
      {"ld-linux", "ld.so", "linux-vdso", "libpthread.so", "librt.so", "libc.so", "libgomp", "libomp",
       "libiomp", "libitm", "libasan", "liblsan", "libtsan", "libubsan", "libhwasan", "libclang_rt",
       "libcuda.so", "libnvidia-"});
  return starts_with_any(name, passed);
}

// The large libraries of most ranks, which use the C library. Not scanning them saves most of the time.
bool is_known_object(std::string_view name) {
  constexpr auto known = std::to_array<std::string_view>(
      {"libmpi", "libfabric.so", "libucp.so", "libuct.so", "libucs.so", "libucm.so", "libapenet-",
       "libstdc++.so", "libm.so", "libgfortran", "libpython3"});
  return starts_with_any(name, known);
}

void pass(std::uint64_t begin, std::uint64_t end) {
  const std::size_t count = code_objects.passed_count;
  for (std::size_t i = 0; i < count; ++i) {
    if (code_objects.passed[i].begin == begin && code_objects.passed[i].end == end) return;
  }
  if (count == code_objects.passed.size()) return;
  code_objects.passed[count].begin = begin;
  code_objects.passed[count].end = end;
  code_objects.passed_count = count + 1;
}

void scan_object(const dl_phdr_info& object) {
  const std::string_view path = object.dlpi_name == nullptr ? std::string_view() : object.dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const bool is_passed = is_passed_object(name);
  if (!is_passed && (code_objects.is_direct || is_known_object(name))) return;
  for (const ElfW(Phdr) & part : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    constexpr unsigned code_flags = PF_X | PF_R;
    if (part.p_type != PT_LOAD || (part.p_flags & code_flags) != code_flags) continue;
    const std::uint64_t begin = object.dlpi_addr + part.p_vaddr;
    if (is_passed) {
      pass(begin, begin + part.p_memsz);
    } else if (part.p_filesz <= most_code_bytes &&
               // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as integers
               has_direct_call({reinterpret_cast<const std::uint8_t*>(begin), part.p_filesz})) {
      const std::string_view shown = name.empty() ? std::string_view(program_invocation_short_name) : name;
      shown.copy(code_objects.name.data(), code_objects.name.size() - 1);
      code_objects.is_direct = true;
      return;
    }
  }
}

int scan_next(dl_phdr_info* object, std::size_t /*bytes*/, void* data) {
  auto& place = *static_cast<std::size_t*>(data);
  if (place == 0) {
    if (object->dlpi_adds == code_objects.added && object->dlpi_subs == code_objects.removed) return 1;
    if (object->dlpi_subs != code_objects.removed)
      code_objects.known = 0;  // others may stand in their places
    code_objects.added = object->dlpi_adds;
    code_objects.removed = object->dlpi_subs;
  }
  if (place++ < code_objects.known) return 0;
  scan_object(*object);
  code_objects.known = place;
  return 0;
}

}  // namespace

bool find_direct_code() {
  std::size_t place = 0;
  dl_iterate_phdr(scan_next, &place);
  return code_objects.is_direct;
}

const char* direct_object() {
  return code_objects.name.data();
}

bool is_passed_code(std::uint64_t address) {
  const auto passed = std::span(code_objects.passed).first(code_objects.passed_count);
  return std::any_of(passed.begin(), passed.end(), [address](const CodeRange& range) {
    return address >= range.begin && address < range.end;
  });
}

}  // namespace apenet::shim

#endif
