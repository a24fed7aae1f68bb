#include "support.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { exit_failure = 1, exit_bad_input = 2 };

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("lqcd: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(exit_failure);
}

void refuse(const char* option, const char* value, const char* expected) {
  fprintf(stderr, "lqcd: %s = '%s': expected %s\n", option, value, expected);
  exit(exit_bad_input);
}

void* allocate(size_t count, size_t bytes) {
  enum { line_bytes = 64 };
  const size_t wanted = (count * bytes + line_bytes) / line_bytes * line_bytes;
  void* memory = bytes > 0 && count > SIZE_MAX / 2 / bytes ? NULL : aligned_alloc(line_bytes, wanted);
  if (memory == NULL) fail("no memory for %zu times %zu bytes", count, bytes);
  memset(memory, 0, wanted);
  return memory;
}

double time_us(void) {
  static time_t first_s = 0;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (first_s == 0) first_s = now.tv_sec;
  return (double)(now.tv_sec - first_s) * 1e6 + (double)now.tv_nsec * 1e-3;
}

void parse_extents(const char* option, const char* text, int extents[4]) {
  const char* rest = text;
  for (int mu = 0; mu < 4; ++mu) {
    char* end = NULL;
    errno = 0;
    const long extent = strtol(rest, &end, 10);
    const char after = mu < 3 ? 'x' : '\0';
    if (end == rest || *end != after || errno != 0 || extent < 1 || extent > 65536)
      refuse(option, text, "four extents from 1 to 65536, such as 4x4x4x8");
    extents[mu] = (int)extent;
    rest = end + 1;
  }
}

double parse_number(const char* option, const char* text, double least, double most) {
  char* end = NULL;
  errno = 0;
  const double value = strtod(text, &end);
  if (end == text || *end != '\0' || errno != 0 || !(value >= least && value <= most)) {
    char expected[64];
    snprintf(expected, sizeof expected, "a number from %g to %g", least, most);
    refuse(option, text, expected);
  }
  return value;
}
