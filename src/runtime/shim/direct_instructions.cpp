#include "runtime/shim/direct_instructions.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "runtime/ipc/old_calls.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace apenet::shim {
namespace {

constexpr auto timed_calls = std::to_array<std::uint32_t>({
    ipc::old_call::poll,
    ipc::old_call::select,
    SYS_sched_yield,
    ipc::old_call::pause,
    SYS_nanosleep,
    SYS_getitimer,
    ipc::old_call::alarm,
    SYS_setitimer,
    SYS_clone,
    ipc::old_call::fork,
    ipc::old_call::vfork,
    SYS_execve,
    SYS_wait4,
    SYS_gettimeofday,
    SYS_getrusage,
    SYS_times,
    SYS_flock,
    SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend,
    ipc::old_call::time,
    SYS_futex,
    ipc::old_call::epoll_create,
    SYS_semtimedop,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_exit_group,
    ipc::old_call::epoll_wait,
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

bool is_timed_call(std::uint32_t number) {
  return std::find(timed_calls.begin(), timed_calls.end(), number) != timed_calls.end();
}

#if defined(__x86_64__)

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
  return is_timed_call(number);
}

}  // namespace

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

#elif defined(__aarch64__)

// An instruction is a word of 32 bits.
constexpr std::uint32_t call_word = 0xd4000001;      // svc #0
constexpr std::uint32_t own_call_word = 0xaa0803e8;  // APENET_OWN_CALL
constexpr std::size_t word_bytes = sizeof(std::uint32_t);

std::uint32_t word_at(Code code, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, code.data() + at, sizeof word);
  return word;
}

// The check of a result in functions for any call: `cmn x0, #4095`, return, or the move of the result.
bool is_check(std::uint32_t word) {
  constexpr std::uint32_t compare = 0xb13ffc1f;
  constexpr std::uint32_t leave = 0xd65f03c0;
  constexpr std::uint32_t move = 0xaa0003e0;  // to the register of the low bits
  constexpr std::uint32_t to = 0x1f;
  return word == compare || word == leave || (word & ~to) == move;
}

bool is_direct_call(Code code, std::size_t at) {
  constexpr std::size_t most_before = 8 * word_bytes;
  if (at < word_bytes || word_at(code, at) != call_word || word_at(code, at - word_bytes) == own_call_word)
    return false;
  for (std::size_t back = word_bytes; back <= std::min(at, most_before); back += word_bytes) {
    const std::uint32_t word = word_at(code, at - back);
    // mov $number, x8 or w8
    if ((word & 0x7fe0001fU) == 0x52800008) return is_timed_call(word >> 5U & 0xffffU);
  }
  return at + 2 * word_bytes <= code.size() && is_check(word_at(code, at + word_bytes));
}

}  // namespace

bool has_direct_call(Code code) {
  for (std::size_t at = 0; at + word_bytes <= code.size(); at += word_bytes) {
    if (is_direct_call(code, at)) return true;
  }
  return false;
}

#endif

}  // namespace apenet::shim
