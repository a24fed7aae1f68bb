/* What the VELO programs of the tests share. Each runs with one rank a node, rank r on node r. */
#ifndef VELO_COMMON_H
#define VELO_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <velo2.h>

static inline void check(velo2_ret_t ret, const char* what) {
  if (ret == VELO2_RET_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", what, velo2_strerror(ret));
  exit(1);
}

#endif
