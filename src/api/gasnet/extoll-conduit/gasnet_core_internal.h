/* GASNet's conduit for EXTOLL: what its source shares with GASNet's. */
#ifndef _GASNET_CORE_INTERNAL_H
#define _GASNET_CORE_INTERNAL_H

#include <gasnet_internal.h>
/* GASNet wants this order. */
#include <gasnet_handler.h>

/* Indices of handlers: 1 to 63 belong to the core, 64 to 127 to the extended interface, the others to the
 * client. The core has none: the library does what they would do. */
#define GASNETC_MAX_NUMHANDLERS 256
#define GASNETC_HANDLER_BASE 1
#define _hidx_gasnetc_auxseg_reqh GASNETC_HANDLER_BASE

/* By index. GASNet's default gasneti_amregister() writes it. */
extern gasneti_handler_fn_t gasnetc_handler[GASNETC_MAX_NUMHANDLERS];

#endif
