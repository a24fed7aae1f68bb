// What the tests' programs share: checks that end the program with the line and the reason.
#ifndef APELIB_CHECKS_H
#define APELIB_CHECKS_H

#include <apelib.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(holds)                                                                            \
  do {                                                                                           \
    if (!(holds)) {                                                                              \
      fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #holds, ape_last_error()); \
      exit(1);                                                                                   \
    }                                                                                            \
  } while (0)
#define CALL(call) EXPECT((call) == APE_OK)
#define FAILS(code, call)                                                                               \
  do {                                                                                                  \
    const int got = (call);                                                                             \
    if (got != (code)) {                                                                                \
      fprintf(stderr, "%s:%d: %s: got %s (%s), not %s\n", __FILE__, __LINE__, #call, ape_strerror(got), \
              ape_last_error(), #code);                                                                 \
      exit(1);                                                                                          \
    }                                                                                                   \
  } while (0)

#endif
