// Output of the C library's streams: what threads print happens in their order (docs/internals/threads.md).
//
// The library's own writes pass no function that the shim replaces, so each call that prints is an action.
// Within it, the stream's lock is free: a thread that holds it by flockfile() is waited for in the order.
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <type_traits>

#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/ordered_waits.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using ipc::OrderedThread;
using StreamCall = void (*)(FILE*);

constexpr std::size_t most_held = 64;

// The streams that threads hold by flockfile().
std::array<std::atomic<const FILE*>, most_held>& held_streams() {
  static constinit std::array<std::atomic<const FILE*>, most_held> value{};
  return value;
}

bool is_held(const FILE* stream) {
  const auto& held = held_streams();
  return std::any_of(held.begin(), held.end(), [stream](const auto& one) { return one == stream; });
}

void note_held(const FILE* from, const FILE* to) {
  for (std::atomic<const FILE*>& place : held_streams()) {
    const FILE* expected = from;
    if (place.compare_exchange_strong(expected, to)) return;
  }
}

int real_try_lock(FILE* stream) {
  static const auto real = next<int (*)(FILE*)>("ftrylockfile");
  return real(stream);
}

void real_lock(FILE* stream) {
  static const auto real = next<StreamCall>("flockfile");
  real(stream);
}

void real_unlock(FILE* stream) {
  static const auto real = next<StreamCall>("funlockfile");
  real(stream);
}

// Within an action: takes the stream's lock.
void take_stream(OrderedThread& own, FILE* stream) {
  while (real_try_lock(stream) != 0) {
    if (is_held(stream)) {
      thread_order().block(own, stream, OrderedThread::no_deadline_ps, nullptr, ipc::WaitEnds::by_thread);
      continue;
    }
    // Another call of the library holds it, and perhaps waits in the host.
    thread_order().leave(own, false);
    {
      const OutsideOrder outside(&own);
      real_lock(stream);
    }
    thread_order().enter(own);
    return;
  }
}

// A call that prints to the stream.
class Printing {
 public:
  explicit Printing(FILE* stream) : stream_(stream), own_(prints_in_order(stream)) {
    if (own_ == nullptr) return;
    thread_order().enter(*own_);
    take_stream(*own_, stream_);
    if (!may_wait_) return;
    thread_order().begin_file_change(*own_);
    thread_order().begin_file_wait(*own_);
  }
  ~Printing() {
    if (own_ == nullptr) return;
    const int error = errno;
    real_unlock(stream_);
    if (may_wait_) {
      if (!thread_order().end_file_wait(*own_)) thread_order().enter(*own_);
      thread_order().wake(thread_order().files(), every_thread, own_);
    }
    thread_order().wake(stream_, 1, own_);
    thread_order().leave(*own_, !is_in_call());
    errno = error;
  }
  Printing(const Printing&) = delete;
  Printing& operator=(const Printing&) = delete;

 private:
  // The calling thread, if the file takes what is printed without another thread of the process, or if it is
  // of the order.
  OrderedThread* prints_in_order(FILE* stream) {
    OrderedThread* const own = ordered_thread();
    if (own == nullptr || stream == nullptr) return nullptr;
    may_wait_ = is_of_order(fileno_unlocked(stream));
    return may_wait_ || is_drained(fileno_unlocked(stream)) ? own : nullptr;
  }

  FILE* stream_;
  bool may_wait_ = false;
  OrderedThread* own_;
};

}  // namespace

#define APENET_PRINT(result, name, parameters, stream, arguments)                \
  APENET_EXPORT result name parameters {                                         \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name); \
    const Printing printing(stream);                                             \
    return real arguments;                                                       \
  }

// The C library has a function of the same name with a list of arguments.
#define APENET_FORMAT(name, of_list, parameters, stream, last, arguments) \
  APENET_EXPORT int name parameters {                                     \
    va_list list;                                                         \
    va_start(list, last);                                                 \
    const int printed = of_list arguments;                                \
    va_end(list);                                                         \
    return printed;                                                       \
  }

APENET_PRINT(int, vfprintf, (FILE * stream, const char* format, va_list list), stream, (stream, format, list))
APENET_PRINT(int, vprintf, (const char* format, va_list list), stdout, (format, list))
APENET_PRINT(int, vfwprintf, (FILE * stream, const wchar_t* format, va_list list), stream,
             (stream, format, list))
APENET_PRINT(int, vwprintf, (const wchar_t* format, va_list list), stdout, (format, list))
APENET_PRINT(int, fputs, (const char* text, FILE* stream), stream, (text, stream))
APENET_PRINT(int, puts, (const char* text), stdout, (text))
APENET_PRINT(int, fputc, (int character, FILE* stream), stream, (character, stream))
APENET_PRINT(int, putc, (int character, FILE* stream), stream, (character, stream))
APENET_PRINT(int, putchar, (int character), stdout, (character))
APENET_PRINT(std::size_t, fwrite, (const void* bytes, std::size_t size, std::size_t count, FILE* stream),
             stream, (bytes, size, count, stream))
APENET_PRINT(int, fputws, (const wchar_t* text, FILE* stream), stream, (text, stream))
APENET_PRINT(wint_t, fputwc, (wchar_t character, FILE* stream), stream, (character, stream))
APENET_PRINT(void, perror, (const char* text), stderr, (text))
APENET_PRINT(int, fflush, (FILE * stream), stream, (stream))

APENET_FORMAT(printf, vprintf, (const char* format, ...), stdout, format, (format, list))
APENET_FORMAT(fprintf, vfprintf, (FILE * stream, const char* format, ...), stream, format,
              (stream, format, list))
APENET_FORMAT(wprintf, vwprintf, (const wchar_t* format, ...), stdout, format, (format, list))
APENET_FORMAT(fwprintf, vfwprintf, (FILE * stream, const wchar_t* format, ...), stream, format,
              (stream, format, list))

// As above, of programs that are compiled with _FORTIFY_SOURCE.
APENET_PRINT(int, __vfprintf_chk, (FILE * stream, int flag, const char* format, va_list list), stream,
             (stream, flag, format, list))
APENET_PRINT(int, __vprintf_chk, (int flag, const char* format, va_list list), stdout, (flag, format, list))
APENET_FORMAT(__printf_chk, __vprintf_chk, (int flag, const char* format, ...), stdout, format,
              (flag, format, list))
APENET_FORMAT(__fprintf_chk, __vfprintf_chk, (FILE * stream, int flag, const char* format, ...), stream,
              format, (stream, flag, format, list))

APENET_EXPORT void flockfile(FILE* stream) noexcept {
  auto* const own = ordered_thread();
  if (own == nullptr) return real_lock(stream);
  const OrderedAction action(*own);
  take_stream(*own, stream);
  note_held(nullptr, stream);
}

APENET_EXPORT int ftrylockfile(FILE* stream) noexcept {
  auto* const own = ordered_thread();
  if (own == nullptr) return real_try_lock(stream);
  const OrderedAction action(*own);
  const int result = real_try_lock(stream);
  if (result == 0) note_held(nullptr, stream);
  return result;
}

APENET_EXPORT void funlockfile(FILE* stream) noexcept {
  auto* const own = ordered_thread();
  if (own == nullptr) return real_unlock(stream);
  const OrderedAction action(*own);
  note_held(stream, nullptr);
  real_unlock(stream);
  thread_order().wake(stream, 1, own);
}

}  // namespace apenet::shim
