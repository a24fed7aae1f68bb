/* GASNet's conduit for EXTOLL: what gasnet.h must know before its own declarations. */
#ifndef _IN_GASNET_H
#error "clients include gasnet.h"
#endif
#ifndef _GASNET_CORE_FWD_H
#define _GASNET_CORE_FWD_H

#define GASNET_CORE_VERSION 1.0
#define GASNET_CORE_VERSION_STR _STRINGIFY(GASNET_CORE_VERSION)
#define GASNET_CORE_NAME EXTOLL
#define GASNET_CORE_NAME_STR _STRINGIFY(GASNET_CORE_NAME)
#define GASNET_CONDUIT_NAME GASNET_CORE_NAME
#define GASNET_CONDUIT_NAME_STR _STRINGIFY(GASNET_CONDUIT_NAME)
#define GASNET_CONDUIT_EXTOLL 1

/* Each process maps its segment where it finds room. */
#define GASNET_ALIGNED_SEGMENTS 0

/* GASNet's wait loops block until a message comes. Each poll of a busy loop would be simulated. */
extern void gasnetc_AMWait(void);
#define gasneti_pollwhile(cnd)     \
  do {                             \
    if (cnd) {                     \
      gasneti_AMPoll();            \
      while (cnd) {                \
        gasnetc_AMWait();          \
        GASNETI_PROGRESSFNS_RUN(); \
      }                            \
    }                              \
    gasneti_local_rmb();           \
  } while (0)

/* The conduit counts only what GASNet counts. */
#define GASNETC_CONDUIT_STATS(CNT, VAL, TIME)

#endif
