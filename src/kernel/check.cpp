#include "kernel/check.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace apenet {

void check_failed(const char* file, int line, const char* condition, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: check failed: %s: ", file, line, condition);
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace apenet
