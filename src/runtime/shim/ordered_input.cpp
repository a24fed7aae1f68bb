// Input by the C library's streams from files of the order (ordered_files.hpp): the library's own reads pass
// no function that the shim replaces, so each call that may read is an action that may wait.
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

#include <cstddef>
#include <optional>
#include <type_traits>

#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// A call that reads from the stream. takes_one: what is in its buffer is enough.
class StreamRead {
 public:
  explicit StreamRead(FILE* stream, bool takes_one = false) {
    if (!thread_order().has_processes() || is_null(stream)) return;
    if (takes_one && stream->_IO_read_ptr < stream->_IO_read_end) return;
    if (ipc::OrderedThread* const own = user_of_order(fileno_unlocked(stream))) action_.emplace(*own);
  }
  StreamRead(const StreamRead&) = delete;
  StreamRead& operator=(const StreamRead&) = delete;

 private:
  std::optional<WaitingFileAction> action_;
};

}  // namespace

#define APENET_READ(result, name, parameters, arguments, stream)                 \
  APENET_EXPORT result name parameters {                                         \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name); \
    const StreamRead reading(stream);                                            \
    return real arguments;                                                       \
  }
#define APENET_READ_ONE(result, name, parameters, arguments, stream)             \
  APENET_EXPORT result name parameters {                                         \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name); \
    const StreamRead reading(stream, true);                                      \
    return real arguments;                                                       \
  }
APENET_READ(char*, fgets, (char* text, int size, FILE* stream), (text, size, stream), stream)
APENET_READ(char*, fgets_unlocked, (char* text, int size, FILE* stream), (text, size, stream), stream)
APENET_READ(std::size_t, fread, (void* bytes, std::size_t size, std::size_t count, FILE* stream),
            (bytes, size, count, stream), stream)
APENET_READ(std::size_t, fread_unlocked, (void* bytes, std::size_t size, std::size_t count, FILE* stream),
            (bytes, size, count, stream), stream)
APENET_READ(ssize_t, getline, (char** line, std::size_t* size, FILE* stream), (line, size, stream), stream)
APENET_READ(ssize_t, getdelim, (char** line, std::size_t* size, int end, FILE* stream),
            (line, size, end, stream), stream)
APENET_READ(ssize_t, __getdelim, (char** line, std::size_t* size, int end, FILE* stream),
            (line, size, end, stream), stream)
APENET_READ(wchar_t*, fgetws, (wchar_t * text, int size, FILE* stream), (text, size, stream), stream)
APENET_READ_ONE(int, fgetc, (FILE * stream), (stream), stream)
APENET_READ_ONE(int, getc, (FILE * stream), (stream), stream)
APENET_READ_ONE(int, fgetc_unlocked, (FILE * stream), (stream), stream)
APENET_READ_ONE(int, getc_unlocked, (FILE * stream), (stream), stream)
APENET_READ_ONE(int, getchar, (), (), stdin)
APENET_READ_ONE(int, getchar_unlocked, (), (), stdin)
APENET_READ_ONE(int, __uflow, (FILE * stream), (stream), stream)
APENET_READ(wint_t, fgetwc, (FILE * stream), (stream), stream)
APENET_READ(wint_t, getwc, (FILE * stream), (stream), stream)

// As above, of programs that are compiled with _FORTIFY_SOURCE.
APENET_READ(char*, __fgets_chk, (char* text, std::size_t room, int size, FILE* stream),
            (text, room, size, stream), stream)
APENET_READ(char*, __fgets_unlocked_chk, (char* text, std::size_t room, int size, FILE* stream),
            (text, room, size, stream), stream)
APENET_READ(std::size_t, __fread_chk,
            (void* bytes, std::size_t room, std::size_t size, std::size_t count, FILE* stream),
            (bytes, room, size, count, stream), stream)
APENET_READ(std::size_t, __fread_unlocked_chk,
            (void* bytes, std::size_t room, std::size_t size, std::size_t count, FILE* stream),
            (bytes, room, size, count, stream), stream)

namespace {

int scan(const char* name, FILE* stream, const char* format, va_list list) {
  const auto real = next<int (*)(FILE*, const char*, va_list)>(name);
  const StreamRead reading(stream);
  return real(stream, format, list);
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
