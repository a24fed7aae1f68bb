// Input by the C library's streams: the library's own reads pass no function that the shim replaces.
//
// From files of the order (ordered_files.hpp), a call takes what is in the stream's buffer, and each time
// that the buffer is empty it waits in order, as read() does. Scans and calls for wide characters that then
// find less than they need wait in the host, within an action. So do reads of other files, beside which
// timers of the process run.
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "runtime/shim/file_names.hpp"
#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

extern "C" int __underflow(FILE* stream) noexcept(false);  // NOLINT(bugprone-reserved-identifier)

namespace apenet::shim {
namespace {

// The begin of the C library's own structure, which it does not declare.
struct WideBuffer {
  const wchar_t* read_ptr;
  const wchar_t* read_end;
};

std::size_t count_buffered(const FILE* stream) {
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(stream->_IO_read_end - stream->_IO_read_ptr, 0));
}

bool has_wide(FILE* stream) {
  if (fwide(stream, 0) <= 0 || stream->_wide_data == nullptr) return false;
  const auto* const wide = reinterpret_cast<const WideBuffer*>(stream->_wide_data);
  return wide->read_ptr < wide->read_end;
}

class StreamLock {
 public:
  explicit StreamLock(FILE* stream) : stream_(stream) { flockfile(stream); }
  ~StreamLock() { funlockfile(stream_); }
  StreamLock(const StreamLock&) = delete;
  StreamLock& operator=(const StreamLock&) = delete;

 private:
  FILE* stream_;
};

// A call that reads from the stream, in the order.
class StreamRead {
 public:
  explicit StreamRead(FILE* stream) : stream_(stream) {
    if (!thread_order().has_processes() || is_null(stream)) return;
    own_ = user_of_order(fileno_unlocked(stream));
  }
  [[nodiscard]] bool is_of_order() const { return own_ != nullptr; }

  enum class Input : std::uint8_t {
    there,  // in the buffer, if that is of bytes
    none,   // the host tells: the file's end, or it has to wait there
    ended,  // a handler has ended the wait: an error of the stream
  };
  enum class Characters : std::uint8_t { bytes, wide };
  // Requires the stream's lock.
  Input await_input(Characters characters = Characters::bytes) {
    if (count_buffered(stream_) > 0 || has_wide(stream_)) return Input::there;
    const int file = fileno_unlocked(stream_);
    if (feof_unlocked(stream_) != 0 || is_nonblocking(file)) return Input::none;
    pollfd one{.fd = file, .events = POLLIN, .revents = 0};
    const OrderedFiles ready({&one, 1}, ipc::OrderedThread::no_deadline_ps, OrderedFiles::Use::change);
    if (ready.outcome() == OrderedFiles::Outcome::interrupted) {
      constexpr int error_seen = 0x20;  // the C library's, for ferror()
      stream_->_flags |= error_seen;
      errno = EINTR;
      return Input::ended;
    }
    is_left_to_host_ = ready.outcome() != OrderedFiles::Outcome::ready;
    if (is_left_to_host_) return Input::none;
    if (characters == Characters::wide) return Input::there;
    __underflow(stream_);
    return count_buffered(stream_) > 0 ? Input::there : Input::none;
  }
  // A call that may wait in the host.
  template <typename Call>
  auto in_host(Call call) {
    std::optional<WaitingFileAction> action;
    if (own_ != nullptr && !is_left_to_host_) action.emplace(*own_);
    const HostPace pace(is_null(stream_) ? nullptr : pacing_reader(fileno_unlocked(stream_)));
    return call();
  }

 private:
  FILE* stream_;
  ipc::OrderedThread* own_ = nullptr;
  bool is_left_to_host_ = false;  // nobody of the order can make the file ready
};

// real(from, bytes): reads from the byte `from` on. Returns how many bytes it has read.
template <typename Real>
std::size_t read_bytes(FILE* stream, std::size_t bytes, Real real) {
  StreamRead reading(stream);
  if (!reading.is_of_order()) return reading.in_host([&] { return real(0, bytes); });
  const StreamLock lock(stream);
  std::size_t done = 0;
  while (done < bytes) {
    const StreamRead::Input input = reading.await_input();
    if (input == StreamRead::Input::ended) break;
    if (input == StreamRead::Input::none)
      return done + reading.in_host([&] { return real(done, bytes - done); });
    done += real(done, std::min(bytes - done, count_buffered(stream)));
  }
  return done;
}

// Bytes in the buffer up to the mark, at most so many.
std::size_t length_to(const FILE* stream, int mark, std::size_t most) {
  const std::size_t bytes = std::min(most, count_buffered(stream));
  const void* const found = std::memchr(stream->_IO_read_ptr, mark, bytes);
  return found == nullptr
             ? bytes
             : static_cast<std::size_t>(static_cast<const char*>(found) - stream->_IO_read_ptr) + 1;
}

// real(from, size): as fgets(), for the text from the byte `from` on.
template <typename Real>
char* read_text(char* text, int size, FILE* stream, Real real) {
  StreamRead reading(stream);
  if (!reading.is_of_order() || size < 2) return reading.in_host([&] { return real(std::size_t{0}, size); });
  const StreamLock lock(stream);
  const auto room = static_cast<std::size_t>(size) - 1;
  std::size_t done = 0;
  while (done < room) {
    const StreamRead::Input input = reading.await_input();
    if (input == StreamRead::Input::ended) return nullptr;
    if (input == StreamRead::Input::none) {
      const bool had_failed = ferror_unlocked(stream) != 0;
      char* const rest = reading.in_host([&] { return real(done, static_cast<int>(room - done) + 1); });
      const bool is_at_end = had_failed || ferror_unlocked(stream) == 0;
      return rest != nullptr || (done > 0 && is_at_end) ? text : nullptr;
    }
    const std::size_t part = length_to(stream, '\n', room - done);
    real(done, static_cast<int>(part) + 1);
    done += part;
    if (text[done - 1] == '\n') break;
  }
  return text;
}

// As getdelim(). real: the C library's.
template <typename Real>
ssize_t read_record(char** line, std::size_t* size, int mark, FILE* stream, Real real) {
  StreamRead reading(stream);
  if (!reading.is_of_order() || line == nullptr || size == nullptr) return reading.in_host(real);
  static const auto take = next<std::size_t (*)(void*, std::size_t, std::size_t, FILE*)>("fread_unlocked");
  const StreamLock lock(stream);
  std::size_t done = 0;
  for (bool is_whole = false; !is_whole;) {
    const StreamRead::Input input = reading.await_input();
    if (input == StreamRead::Input::none && done == 0) return reading.in_host(real);
    if (input == StreamRead::Input::none) reading.in_host([&] { return __underflow(stream); });
    if (count_buffered(stream) == 0) break;
    const std::size_t part = length_to(stream, mark, std::numeric_limits<std::size_t>::max());
    if (*line == nullptr || *size < done + part + 1) {
      constexpr std::size_t least = 120;
      const std::size_t wanted = std::max({least, 2 * done, done + part + 1});
      auto* const larger = static_cast<char*>(realloc(*line, wanted));
      if (larger == nullptr) return -1;
      *line = larger;
      *size = wanted;
    }
    done += take(*line + done, 1, part, stream);
    is_whole = (*line)[done - 1] == static_cast<char>(mark);
  }
  if (done == 0) return -1;
  (*line)[done] = '\0';
  return static_cast<ssize_t>(done);
}

// A call that needs one byte, or takes what it needs one by one. failed: its result after an error.
template <typename Result, typename Real>
Result read_some(FILE* stream, bool takes_one, Result failed, Real real) {
  if (!is_null(stream) && takes_one && count_buffered(stream) > 0) return real();
  StreamRead reading(stream);
  if (!reading.is_of_order()) return reading.in_host(real);
  const StreamLock lock(stream);
  const StreamRead::Input input = reading.await_input();
  if (input == StreamRead::Input::ended) return failed;
  return takes_one && input == StreamRead::Input::there ? real() : reading.in_host(real);
}

template <typename Result, typename Real>
Result read_wide(FILE* stream, Result failed, Real real) {
  StreamRead reading(stream);
  if (!reading.is_of_order()) return reading.in_host(real);
  const StreamLock lock(stream);
  const bool is_ended = reading.await_input(StreamRead::Characters::wide) == StreamRead::Input::ended;
  return is_ended ? failed : reading.in_host(real);
}

}  // namespace

APENET_EXPORT char* fgets(char* text, int size, FILE* stream) {
  static const auto real = next<char* (*)(char*, int, FILE*)>("fgets");
  return read_text(text, size, stream,
                   [&](std::size_t from, int part) { return real(text + from, part, stream); });
}
APENET_EXPORT char* fgets_unlocked(char* text, int size, FILE* stream) {
  static const auto real = next<char* (*)(char*, int, FILE*)>("fgets_unlocked");
  return read_text(text, size, stream,
                   [&](std::size_t from, int part) { return real(text + from, part, stream); });
}
// Programs that are compiled with _FORTIFY_SOURCE call this, and others of such names.
APENET_EXPORT char* __fgets_chk(char* text, std::size_t room, int size, FILE* stream) {
  static const auto real = next<char* (*)(char*, std::size_t, int, FILE*)>("__fgets_chk");
  return read_text(text, size, stream,
                   [&](std::size_t from, int part) { return real(text + from, room - from, part, stream); });
}
APENET_EXPORT char* __fgets_unlocked_chk(char* text, std::size_t room, int size, FILE* stream) {
  static const auto real = next<char* (*)(char*, std::size_t, int, FILE*)>("__fgets_unlocked_chk");
  return read_text(text, size, stream,
                   [&](std::size_t from, int part) { return real(text + from, room - from, part, stream); });
}

namespace {

std::size_t count_whole(std::size_t bytes, std::size_t size) {
  return size == 0 ? 0 : bytes / size;
}

}  // namespace

#define APENET_READ_ITEMS(name, parameters, ...)                                                          \
  APENET_EXPORT std::size_t name parameters {                                                             \
    static const auto real = next<std::add_pointer_t<std::size_t parameters>>(#name);                     \
    std::size_t whole = 0;                                                                                \
    if (__builtin_mul_overflow(size, count, &whole)) whole = std::numeric_limits<std::size_t>::max();     \
    auto* const to = static_cast<char*>(bytes);                                                           \
    const auto read_part = [&](std::size_t from, std::size_t part) { return real(__VA_ARGS__, stream); }; \
    return count_whole(read_bytes(stream, whole, read_part), size);                                       \
  }
APENET_READ_ITEMS(fread, (void* bytes, std::size_t size, std::size_t count, FILE* stream), to + from, 1, part)
APENET_READ_ITEMS(fread_unlocked, (void* bytes, std::size_t size, std::size_t count, FILE* stream), to + from,
                  1, part)
APENET_READ_ITEMS(__fread_chk,
                  (void* bytes, std::size_t room, std::size_t size, std::size_t count, FILE* stream),
                  to + from, room - from, 1, part)
APENET_READ_ITEMS(__fread_unlocked_chk,
                  (void* bytes, std::size_t room, std::size_t size, std::size_t count, FILE* stream),
                  to + from, room - from, 1, part)

APENET_EXPORT ssize_t getline(char** line, std::size_t* size, FILE* stream) {
  static const auto real = next<ssize_t (*)(char**, std::size_t*, FILE*)>("getline");
  return read_record(line, size, '\n', stream, [&] { return real(line, size, stream); });
}
APENET_EXPORT ssize_t getdelim(char** line, std::size_t* size, int end, FILE* stream) {
  static const auto real = next<ssize_t (*)(char**, std::size_t*, int, FILE*)>("getdelim");
  return read_record(line, size, end, stream, [&] { return real(line, size, end, stream); });
}
APENET_EXPORT ssize_t __getdelim(char** line, std::size_t* size, int end, FILE* stream) {
  return getdelim(line, size, end, stream);
}

// takes_one: what is in the buffer of the stream is enough.
#define APENET_READ_SOME(result, name, parameters, arguments, stream, takes_one, failed) \
  APENET_EXPORT result name parameters {                                                 \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name);         \
    return read_some<result>(stream, takes_one, failed, [&] { return real arguments; }); \
  }
APENET_READ_SOME(int, fgetc, (FILE * stream), (stream), stream, true, EOF)
APENET_READ_SOME(int, getc, (FILE * stream), (stream), stream, true, EOF)
APENET_READ_SOME(int, fgetc_unlocked, (FILE * stream), (stream), stream, true, EOF)
APENET_READ_SOME(int, getc_unlocked, (FILE * stream), (stream), stream, true, EOF)
APENET_READ_SOME(int, getchar, (), (), stdin, true, EOF)
APENET_READ_SOME(int, getchar_unlocked, (), (), stdin, true, EOF)
APENET_READ_SOME(int, __uflow, (FILE * stream), (stream), stream, true, EOF)

#define APENET_READ_WIDE(result, name, parameters, arguments, failed)            \
  APENET_EXPORT result name parameters {                                         \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name); \
    return read_wide<result>(stream, failed, [&] { return real arguments; });    \
  }
APENET_READ_WIDE(wchar_t*, fgetws, (wchar_t * text, int size, FILE* stream), (text, size, stream), nullptr)
APENET_READ_WIDE(wint_t, fgetwc, (FILE * stream), (stream), WEOF)
APENET_READ_WIDE(wint_t, getwc, (FILE * stream), (stream), WEOF)

namespace {

int scan(const char* name, FILE* stream, const char* format, va_list list) {
  const auto real = next<int (*)(FILE*, const char*, va_list)>(name);
  return read_some<int>(stream, false, EOF, [&] { return real(stream, format, list); });
}

}  // namespace

// The header gives these functions the names of one standard; programs are compiled with any.
#define APENET_SCANS(prefix)                                                                         \
  APENET_EXPORT int apenet##prefix##vfscanf(FILE*, const char*, va_list) __asm__(#prefix "vfscanf"); \
  int apenet##prefix##vfscanf(FILE* stream, const char* format, va_list list) {                      \
    return scan(#prefix "vfscanf", stream, format, list);                                            \
  }                                                                                                  \
  APENET_EXPORT int apenet##prefix##fscanf(FILE*, const char*, ...) __asm__(#prefix "fscanf");       \
  int apenet##prefix##fscanf(FILE* stream, const char* format, ...) {                                \
    va_list list;                                                                                    \
    va_start(list, format);                                                                          \
    const int found = scan(#prefix "vfscanf", stream, format, list);                                 \
    va_end(list);                                                                                    \
    return found;                                                                                    \
  }                                                                                                  \
  APENET_EXPORT int apenet##prefix##scanf(const char*, ...) __asm__(#prefix "scanf");                \
  int apenet##prefix##scanf(const char* format, ...) {                                               \
    va_list list;                                                                                    \
    va_start(list, format);                                                                          \
    const int found = scan(#prefix "vfscanf", stdin, format, list);                                  \
    va_end(list);                                                                                    \
    return found;                                                                                    \
  }

APENET_SCANS()
APENET_SCANS(__isoc99_)
APENET_SCANS(__isoc23_)

}  // namespace apenet::shim
