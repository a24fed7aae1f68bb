// What the tests' programs share: checks that end the program with the line and the reason.
#ifndef QMP_CHECKS_H
#define QMP_CHECKS_H

#include <qmp.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(holds)                                                                                   \
  do {                                                                                                  \
    if (!(holds)) {                                                                                     \
      fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #holds, QMP_get_error_string(0)); \
      exit(1);                                                                                          \
    }                                                                                                   \
  } while (0)
#define CALL(call) EXPECT((call) == QMP_SUCCESS)
#define FAILS(code, call)                                                                              \
  do {                                                                                                 \
    const QMP_status_t got = (call);                                                                   \
    if (got != (code)) {                                                                               \
      fprintf(stderr, "%s:%d: %s: got %s, not %s\n", __FILE__, __LINE__, #call, QMP_error_string(got), \
              #code);                                                                                  \
      exit(1);                                                                                         \
    }                                                                                                  \
  } while (0)
// A call that returns no status.
#define REFUSED(code, holds)                 \
  do {                                       \
    EXPECT(holds);                           \
    FAILS(code, QMP_get_error_number(NULL)); \
  } while (0)

#endif
