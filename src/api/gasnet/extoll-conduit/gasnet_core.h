/* GASNet's conduit for EXTOLL: the core interface that clients see. */
#ifndef _IN_GASNET_H
#error "clients include gasnet.h"
#endif
#ifndef _GASNET_CORE_H
#define _GASNET_CORE_H

#include <gasnet_core_help.h>

/* Job control. gasnet.h gives gasnet_init() a name of its own in each configuration. */
extern int gasnet_init(int* argc, char*** argv);
extern int gasnetc_attach(gasnet_handlerentry_t* table, int numentries, uintptr_t segsize,
                          uintptr_t minheapoffset);
extern void gasnetc_exit(int exitcode) GASNETI_NORETURN;
GASNETI_NORETURNP(gasnetc_exit)
#define gasnet_attach gasnetc_attach
#define gasnet_exit gasnetc_exit
#define GASNET_NULL_ARGV_OK 1

/* Handlers run in threads that poll, so a no-interrupt section has nothing to hold back. */
#define gasnet_hold_interrupts()
#define gasnet_resume_interrupts()

/* Handler-safe locks: GASNet's mutexes, which are empty where there is one thread. */
typedef struct {
  gasneti_mutex_t lock;
} gasnet_hsl_t;
#define GASNET_HSL_INITIALIZER \
  { GASNETI_MUTEX_INITIALIZER }
extern void gasnetc_hsl_init(gasnet_hsl_t* hsl);
extern void gasnetc_hsl_destroy(gasnet_hsl_t* hsl);
extern void gasnetc_hsl_lock(gasnet_hsl_t* hsl);
extern void gasnetc_hsl_unlock(gasnet_hsl_t* hsl);
extern int gasnetc_hsl_trylock(gasnet_hsl_t* hsl) GASNETI_WARN_UNUSED_RESULT;
#define gasnet_hsl_init gasnetc_hsl_init
#define gasnet_hsl_destroy gasnetc_hsl_destroy
#define gasnet_hsl_lock gasnetc_hsl_lock
#define gasnet_hsl_unlock gasnetc_hsl_unlock
#define gasnet_hsl_trylock gasnetc_hsl_trylock

/* Active Messages. gasnet_ammacros.h makes the other calls of six functions with a variable number of
 * arguments. */
extern size_t gasnetc_AMMaxLong(void);
#define gasnet_AMMaxArgs() ((size_t)16)
#define gasnet_AMMaxMedium() ((size_t)8192)
#define gasnet_AMMaxLongRequest() gasnetc_AMMaxLong()
#define gasnet_AMMaxLongReply() gasnetc_AMMaxLong()
extern int gasnetc_AMGetMsgSource(gasnet_token_t token, gasnet_node_t* srcindex);
#define gasnet_AMGetMsgSource gasnetc_AMGetMsgSource
#define GASNET_BLOCKUNTIL(condition) gasneti_polluntil(condition)
/* Defined for the GASNet trees that call it. */
#define GASNET_BLOCKUNTIL2(function, condition) gasneti_polluntil2(function, condition)

#endif

#include <gasnet_ammacros.h>
