/* The part of GASNet's collectives that its clients need besides barriers: initialisation and a broadcast. */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H

#include "gasnet_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t gasnet_image_t;
typedef struct gasneti_team* gasnet_team_handle_t;
#define GASNET_TEAM_ALL ((gasnet_team_handle_t)0)

typedef struct {
  void (*fnptr)();
  unsigned int flags;
} gasnet_coll_fn_entry_t;

/* Every flag is accepted, and every collective has the strongest synchronisation: it begins and ends with
 * all. */
#define GASNET_COLL_LOCAL 1
#define GASNET_COLL_SINGLE 2
#define GASNET_COLL_IN_ALLSYNC 4
#define GASNET_COLL_OUT_ALLSYNC 8
#define GASNET_COLL_SRC_IN_SEGMENT 16
#define GASNET_COLL_DST_IN_SEGMENT 32
#define GASNET_COLL_IN_MYSYNC 64
#define GASNET_COLL_OUT_MYSYNC 128

/* images: the number on each node. Only one each is supported (or NULL); other numbers are fatal. */
GASNET_PUBLIC void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image,
                                    gasnet_coll_fn_entry_t functions[], size_t function_count, int flags);
/* Collective: `bytes` from `source` on `root` to `destination` on every node. */
GASNET_PUBLIC void gasnet_coll_broadcast(gasnet_team_handle_t team, void* destination, gasnet_image_t root,
                                         void* source, size_t bytes, int flags);

#ifdef __cplusplus
}
#endif
#endif
