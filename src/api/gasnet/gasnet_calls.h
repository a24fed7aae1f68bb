/* All that gasnet.h declares except the collectives, which need these declarations themselves. Include
 * gasnet.h or gasnet_coll.h. */
#ifndef GASNET_CALLS_H
#define GASNET_CALLS_H

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(GASNET_SEQ) + defined(GASNET_PAR) + defined(GASNET_PARSYNC) != 1
#error \
    "define exactly one of GASNET_SEQ, GASNET_PAR and GASNET_PARSYNC: apenet cc --gasnet-seq, and so on, does"
#endif
#if defined(GASNET_SEGMENT_FAST) + defined(GASNET_SEGMENT_LARGE) + defined(GASNET_SEGMENT_EVERYTHING) > 1
#error "define one of GASNET_SEGMENT_FAST, GASNET_SEGMENT_LARGE and GASNET_SEGMENT_EVERYTHING"
#endif
#if !defined(GASNET_SEGMENT_LARGE) && !defined(GASNET_SEGMENT_EVERYTHING)
#define GASNET_SEGMENT_FAST 1
#endif

#define GASNET_PUBLIC __attribute__((visibility("default")))

#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#define GASNET_VERSION GASNET_SPEC_VERSION_MAJOR
#define GASNET_RELEASE_VERSION_MAJOR 1
#define GASNET_RELEASE_VERSION_MINOR 8
#define GASNET_RELEASE_VERSION_PATCH 1

/* The conduit is chosen when the program runs: GASNET_CONDUIT, or the machine's card. */
#define GASNET_CORE_NAME APENET
#define GASNET_CORE_NAME_STR "APENET"
#define GASNET_CORE_VERSION 1.0
#define GASNET_CORE_VERSION_STR "1.0"
#define GASNET_EXTENDED_NAME APENET
#define GASNET_EXTENDED_NAME_STR "APENET"
#define GASNET_EXTENDED_VERSION 1.0
#define GASNET_EXTENDED_VERSION_STR "1.0"
#define GASNET_CONDUIT_APENET 1
#define GASNET_CONDUIT_NAME APENET
#define GASNET_CONDUIT_NAME_STR "APENET"

#ifdef GASNET_SEQ
#define GASNETI_MODE(name) name##_seq
#define GASNETI_MODE_STR "SEQ"
#elif defined(GASNET_PAR)
#define GASNETI_MODE(name) name##_par
#define GASNETI_MODE_STR "PAR"
#else
#define GASNETI_MODE(name) name##_parsync
#define GASNETI_MODE_STR "PARSYNC"
#endif
#ifdef GASNET_SEGMENT_FAST
#define GASNETI_SEGMENT_STR "FAST"
#elif defined(GASNET_SEGMENT_LARGE)
#define GASNETI_SEGMENT_STR "LARGE"
#else
#define GASNETI_SEGMENT_STR "EVERYTHING"
#endif
#define GASNET_CONFIG_STRING                                                                   \
  "RELEASE=1.8.1,SPEC=1.8,CONDUIT=APENET(APENET-1.0/APENET-1.0),THREADMODEL=" GASNETI_MODE_STR \
  ",SEGMENT=" GASNETI_SEGMENT_STR ",PTR=64bit,noalign,pshm:no,nodebug,notrace,nostats,nosrclines"

#define GASNET_MAXNODES 65534 /* the EXTOLL card's node numbers have 16 bits; other cards allow no more */
#define GASNET_ALIGNED_SEGMENTS 0
#define GASNET_PAGESIZE 4096
#define GASNET_BEGIN_FUNCTION() ((void)0)
#define GASNET_POST_THREADINFO(info) ((void)(info))
#define GASNET_GET_THREADINFO() (NULL)

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t gasnet_node_t;
typedef uint8_t gasnet_handler_t;
typedef int32_t gasnet_handlerarg_t;
typedef void* gasnet_token_t;
typedef void* gasnet_threadinfo_t;
typedef uintptr_t gasnet_register_value_t;
#define SIZEOF_GASNET_REGISTER_VALUE_T 8

typedef struct {
  gasnet_handler_t index; /* 128 to 255; 0: the library chooses, and writes its choice here */
  void (*fnptr)();
} gasnet_handlerentry_t;

typedef struct {
  void* addr;
  uintptr_t size;
} gasnet_seginfo_t;

typedef struct {
  gasnet_node_t host;      /* the first process of the same node */
  gasnet_node_t supernode; /* the same */
} gasnet_nodeinfo_t;

/* Results. gasnet_ErrorName() and gasnet_ErrorDesc() say what they mean. */
#define GASNET_OK 0
#define GASNET_ERR_NOT_INIT 10001
#define GASNET_ERR_RESOURCE 10002
#define GASNET_ERR_BAD_ARG 10003
#define GASNET_ERR_NOT_READY 10004
#define GASNET_ERR_BARRIER_MISMATCH 10005

GASNET_PUBLIC const char* gasnet_ErrorName(int error);
GASNET_PUBLIC const char* gasnet_ErrorDesc(int error);

/* Evaluates `call`; any other result than GASNET_OK is fatal, with node, call and place. */
#define GASNET_SAFE(call)                                                                       \
  do {                                                                                          \
    const int gasneti_result = (call);                                                          \
    if (gasneti_result != GASNET_OK) gasneti_unsafe(gasneti_result, #call, __FILE__, __LINE__); \
  } while (0)
GASNET_PUBLIC void gasneti_unsafe(int error, const char* call, const char* file, int line);

/* Job control. gasnet_init() links only with the library of the mode that the program is compiled for. */
#define gasneti_init_everything GASNETI_MODE(gasneti_init_everything)
#ifdef GASNET_SEGMENT_EVERYTHING
#define gasnet_init gasneti_init_everything
#else
#define gasnet_init GASNETI_MODE(gasnet_init)
GASNET_PUBLIC int gasnet_init(int* argc, char*** argv);
#endif
GASNET_PUBLIC int gasneti_init_everything(int* argc, char*** argv);
/* Collective. GASNET_ERR_BAD_ARG: an index below 128 or twice, a size that is no multiple of GASNET_PAGESIZE
 * or is above gasnet_getMaxLocalSegmentSize(). GASNET_ERR_RESOURCE: the memory cannot be had. With
 * GASNET_SEGMENT_EVERYTHING every access may reach all memory of a process, and the size is ignored. */
GASNET_PUBLIC int gasnet_attach(gasnet_handlerentry_t* table, int entries, uintptr_t segment_bytes,
                                uintptr_t min_heap_offset);
GASNET_PUBLIC void gasnet_exit(int code) __attribute__((noreturn));
GASNET_PUBLIC gasnet_node_t gasnet_mynode(void);
GASNET_PUBLIC gasnet_node_t gasnet_nodes(void);
GASNET_PUBLIC uintptr_t gasnet_getMaxLocalSegmentSize(void);
GASNET_PUBLIC uintptr_t gasnet_getMaxGlobalSegmentSize(void);
GASNET_PUBLIC int gasnet_getSegmentInfo(gasnet_seginfo_t* table, int entries);
GASNET_PUBLIC int gasnet_getNodeInfo(gasnet_nodeinfo_t* table, int entries);
GASNET_PUBLIC char* gasnet_getenv(const char* name);

#define GASNET_WAIT_SPIN 0
#define GASNET_WAIT_BLOCK 1
#define GASNET_WAIT_SPINBLOCK 2
GASNET_PUBLIC int gasnet_set_waitmode(int mode);

/* Active Messages. A handler is void f(gasnet_token_t, gasnet_handlerarg_t...) for a short message, and
 * void f(gasnet_token_t, void* payload, size_t bytes, gasnet_handlerarg_t...) for a medium or long one. A
 * handler of a request may send one reply, and no request; a handler of a reply sends nothing. */
GASNET_PUBLIC size_t gasnet_AMMaxArgs(void);
GASNET_PUBLIC size_t gasnet_AMMaxMedium(void);
GASNET_PUBLIC size_t gasnet_AMMaxLongRequest(void);
GASNET_PUBLIC size_t gasnet_AMMaxLongReply(void);
GASNET_PUBLIC int gasnet_AMPoll(void);
GASNET_PUBLIC int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t* source);

/* The calls below are made of these. is_async: the source of a long request may change only when its reply
 * has come. */
GASNET_PUBLIC int gasneti_request_short(gasnet_node_t target, gasnet_handler_t handler,
                                        const gasnet_handlerarg_t* arguments, int count);
GASNET_PUBLIC int gasneti_request_medium(gasnet_node_t target, gasnet_handler_t handler, const void* source,
                                         size_t bytes, const gasnet_handlerarg_t* arguments, int count);
GASNET_PUBLIC int gasneti_request_long(gasnet_node_t target, gasnet_handler_t handler, const void* source,
                                       size_t bytes, void* destination, int is_async,
                                       const gasnet_handlerarg_t* arguments, int count);
GASNET_PUBLIC int gasneti_reply_short(gasnet_token_t token, gasnet_handler_t handler,
                                      const gasnet_handlerarg_t* arguments, int count);
GASNET_PUBLIC int gasneti_reply_medium(gasnet_token_t token, gasnet_handler_t handler, const void* source,
                                       size_t bytes, const gasnet_handlerarg_t* arguments, int count);
GASNET_PUBLIC int gasneti_reply_long(gasnet_token_t token, gasnet_handler_t handler, const void* source,
                                     size_t bytes, void* destination, const gasnet_handlerarg_t* arguments,
                                     int count);

#define GASNETI_P(n) , gasnet_handlerarg_t a##n
#define GASNETI_PARAMETERS_0
#define GASNETI_PARAMETERS_1 GASNETI_P(0)
#define GASNETI_PARAMETERS_2 GASNETI_PARAMETERS_1 GASNETI_P(1)
#define GASNETI_PARAMETERS_3 GASNETI_PARAMETERS_2 GASNETI_P(2)
#define GASNETI_PARAMETERS_4 GASNETI_PARAMETERS_3 GASNETI_P(3)
#define GASNETI_PARAMETERS_5 GASNETI_PARAMETERS_4 GASNETI_P(4)
#define GASNETI_PARAMETERS_6 GASNETI_PARAMETERS_5 GASNETI_P(5)
#define GASNETI_PARAMETERS_7 GASNETI_PARAMETERS_6 GASNETI_P(6)
#define GASNETI_PARAMETERS_8 GASNETI_PARAMETERS_7 GASNETI_P(7)
#define GASNETI_PARAMETERS_9 GASNETI_PARAMETERS_8 GASNETI_P(8)
#define GASNETI_PARAMETERS_10 GASNETI_PARAMETERS_9 GASNETI_P(9)
#define GASNETI_PARAMETERS_11 GASNETI_PARAMETERS_10 GASNETI_P(10)
#define GASNETI_PARAMETERS_12 GASNETI_PARAMETERS_11 GASNETI_P(11)
#define GASNETI_PARAMETERS_13 GASNETI_PARAMETERS_12 GASNETI_P(12)
#define GASNETI_PARAMETERS_14 GASNETI_PARAMETERS_13 GASNETI_P(13)
#define GASNETI_PARAMETERS_15 GASNETI_PARAMETERS_14 GASNETI_P(14)
#define GASNETI_PARAMETERS_16 GASNETI_PARAMETERS_15 GASNETI_P(15)
#define GASNETI_LIST_0
#define GASNETI_LIST_1 a0
#define GASNETI_LIST_2 a0, a1
#define GASNETI_LIST_3 GASNETI_LIST_2, a2
#define GASNETI_LIST_4 GASNETI_LIST_3, a3
#define GASNETI_LIST_5 GASNETI_LIST_4, a4
#define GASNETI_LIST_6 GASNETI_LIST_5, a5
#define GASNETI_LIST_7 GASNETI_LIST_6, a6
#define GASNETI_LIST_8 GASNETI_LIST_7, a7
#define GASNETI_LIST_9 GASNETI_LIST_8, a8
#define GASNETI_LIST_10 GASNETI_LIST_9, a9
#define GASNETI_LIST_11 GASNETI_LIST_10, a10
#define GASNETI_LIST_12 GASNETI_LIST_11, a11
#define GASNETI_LIST_13 GASNETI_LIST_12, a12
#define GASNETI_LIST_14 GASNETI_LIST_13, a13
#define GASNETI_LIST_15 GASNETI_LIST_14, a14
#define GASNETI_LIST_16 GASNETI_LIST_15, a15

/* gasnet_AMRequestShort0 ... gasnet_AMReplyLong16. The array has one element more, because C has no empty
 * one. */
#define GASNETI_ARGUMENTS(count) const gasnet_handlerarg_t arguments[] = {GASNETI_LIST_##count}
#define GASNETI_ARGUMENTS_0 const gasnet_handlerarg_t arguments[] = {0}
#define GASNETI_MESSAGES(count, ARGUMENTS)                                                                  \
  static inline int gasnet_AMRequestShort##count(gasnet_node_t target,                                      \
                                                 gasnet_handler_t handler GASNETI_PARAMETERS_##count) {     \
    ARGUMENTS;                                                                                              \
    return gasneti_request_short(target, handler, arguments, count);                                        \
  }                                                                                                         \
  static inline int gasnet_AMRequestMedium##count(gasnet_node_t target, gasnet_handler_t handler,           \
                                                  void* source, size_t bytes GASNETI_PARAMETERS_##count) {  \
    ARGUMENTS;                                                                                              \
    return gasneti_request_medium(target, handler, source, bytes, arguments, count);                        \
  }                                                                                                         \
  static inline int gasnet_AMRequestLong##count(gasnet_node_t target, gasnet_handler_t handler,             \
                                                void* source, size_t bytes,                                 \
                                                void* destination GASNETI_PARAMETERS_##count) {             \
    ARGUMENTS;                                                                                              \
    return gasneti_request_long(target, handler, source, bytes, destination, 0, arguments, count);          \
  }                                                                                                         \
  static inline int gasnet_AMRequestLongAsync##count(gasnet_node_t target, gasnet_handler_t handler,        \
                                                     void* source, size_t bytes,                            \
                                                     void* destination GASNETI_PARAMETERS_##count) {        \
    ARGUMENTS;                                                                                              \
    return gasneti_request_long(target, handler, source, bytes, destination, 1, arguments, count);          \
  }                                                                                                         \
  static inline int gasnet_AMReplyShort##count(gasnet_token_t token,                                        \
                                               gasnet_handler_t handler GASNETI_PARAMETERS_##count) {       \
    ARGUMENTS;                                                                                              \
    return gasneti_reply_short(token, handler, arguments, count);                                           \
  }                                                                                                         \
  static inline int gasnet_AMReplyMedium##count(gasnet_token_t token, gasnet_handler_t handler,             \
                                                void* source, size_t bytes GASNETI_PARAMETERS_##count) {    \
    ARGUMENTS;                                                                                              \
    return gasneti_reply_medium(token, handler, source, bytes, arguments, count);                           \
  }                                                                                                         \
  static inline int gasnet_AMReplyLong##count(gasnet_token_t token, gasnet_handler_t handler, void* source, \
                                              size_t bytes, void* destination GASNETI_PARAMETERS_##count) { \
    ARGUMENTS;                                                                                              \
    return gasneti_reply_long(token, handler, source, bytes, destination, arguments, count);                \
  }
GASNETI_MESSAGES(0, GASNETI_ARGUMENTS_0)
GASNETI_MESSAGES(1, GASNETI_ARGUMENTS(1))
GASNETI_MESSAGES(2, GASNETI_ARGUMENTS(2))
GASNETI_MESSAGES(3, GASNETI_ARGUMENTS(3))
GASNETI_MESSAGES(4, GASNETI_ARGUMENTS(4))
GASNETI_MESSAGES(5, GASNETI_ARGUMENTS(5))
GASNETI_MESSAGES(6, GASNETI_ARGUMENTS(6))
GASNETI_MESSAGES(7, GASNETI_ARGUMENTS(7))
GASNETI_MESSAGES(8, GASNETI_ARGUMENTS(8))
GASNETI_MESSAGES(9, GASNETI_ARGUMENTS(9))
GASNETI_MESSAGES(10, GASNETI_ARGUMENTS(10))
GASNETI_MESSAGES(11, GASNETI_ARGUMENTS(11))
GASNETI_MESSAGES(12, GASNETI_ARGUMENTS(12))
GASNETI_MESSAGES(13, GASNETI_ARGUMENTS(13))
GASNETI_MESSAGES(14, GASNETI_ARGUMENTS(14))
GASNETI_MESSAGES(15, GASNETI_ARGUMENTS(15))
GASNETI_MESSAGES(16, GASNETI_ARGUMENTS(16))

/* Returns when `condition` holds, which only a handler may make true; polls meanwhile. */
#define GASNET_BLOCKUNTIL(condition)               \
  do {                                             \
    while (!(condition)) gasneti_await_progress(); \
  } while (0)
/* Runs the handlers that are due; if there are none, waits (SEQ) or polls once (PAR, PARSYNC). */
GASNET_PUBLIC void gasneti_await_progress(void);

/* Handler-safe locks and no-interrupt sections. Handlers run only in a thread that polls, so a section has
 * nothing to hold back; both check their use. */
typedef struct {
  uint64_t owner; /* a thread, or 0 */
} gasnet_hsl_t;
/* clang-format off */
#define GASNET_HSL_INITIALIZER {0}
/* clang-format on */
GASNET_PUBLIC void gasnet_hsl_init(gasnet_hsl_t* lock);
GASNET_PUBLIC void gasnet_hsl_destroy(gasnet_hsl_t* lock);
GASNET_PUBLIC void gasnet_hsl_lock(gasnet_hsl_t* lock);
GASNET_PUBLIC int gasnet_hsl_trylock(gasnet_hsl_t* lock); /* GASNET_OK or GASNET_ERR_NOT_READY */
GASNET_PUBLIC void gasnet_hsl_unlock(gasnet_hsl_t* lock);
GASNET_PUBLIC void gasnet_hold_interrupts(void);
GASNET_PUBLIC void gasnet_resume_interrupts(void);

/* The extended interface. Remote memory is in the target's segment, with GASNET_SEGMENT_EVERYTHING anywhere
 * as local memory is. */
typedef struct gasneti_operation* gasnet_handle_t;
#define GASNET_INVALID_HANDLE ((gasnet_handle_t)0)
typedef struct gasneti_valget* gasnet_valget_handle_t;

GASNET_PUBLIC void gasnet_put(gasnet_node_t node, void* destination, void* source, size_t bytes);
GASNET_PUBLIC void gasnet_get(void* destination, gasnet_node_t node, void* source, size_t bytes);
GASNET_PUBLIC void gasnet_put_bulk(gasnet_node_t node, void* destination, void* source, size_t bytes);
GASNET_PUBLIC void gasnet_get_bulk(void* destination, gasnet_node_t node, void* source, size_t bytes);
GASNET_PUBLIC void gasnet_memset(gasnet_node_t node, void* destination, int value, size_t bytes);

GASNET_PUBLIC gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void* destination, void* source,
                                            size_t bytes);
GASNET_PUBLIC gasnet_handle_t gasnet_get_nb(void* destination, gasnet_node_t node, void* source,
                                            size_t bytes);
GASNET_PUBLIC gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t node, void* destination, void* source,
                                                 size_t bytes);
GASNET_PUBLIC gasnet_handle_t gasnet_get_nb_bulk(void* destination, gasnet_node_t node, void* source,
                                                 size_t bytes);
GASNET_PUBLIC gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void* destination, int value,
                                               size_t bytes);
GASNET_PUBLIC void gasnet_wait_syncnb(gasnet_handle_t handle);
GASNET_PUBLIC int gasnet_try_syncnb(gasnet_handle_t handle);
GASNET_PUBLIC void gasnet_wait_syncnb_all(gasnet_handle_t* handles, size_t count);
GASNET_PUBLIC int gasnet_try_syncnb_all(gasnet_handle_t* handles, size_t count);
GASNET_PUBLIC void gasnet_wait_syncnb_some(gasnet_handle_t* handles, size_t count);
GASNET_PUBLIC int gasnet_try_syncnb_some(gasnet_handle_t* handles, size_t count);

GASNET_PUBLIC void gasnet_put_nbi(gasnet_node_t node, void* destination, void* source, size_t bytes);
GASNET_PUBLIC void gasnet_get_nbi(void* destination, gasnet_node_t node, void* source, size_t bytes);
GASNET_PUBLIC void gasnet_put_nbi_bulk(gasnet_node_t node, void* destination, void* source, size_t bytes);
GASNET_PUBLIC void gasnet_get_nbi_bulk(void* destination, gasnet_node_t node, void* source, size_t bytes);
GASNET_PUBLIC void gasnet_memset_nbi(gasnet_node_t node, void* destination, int value, size_t bytes);
GASNET_PUBLIC void gasnet_wait_syncnbi_gets(void);
GASNET_PUBLIC void gasnet_wait_syncnbi_puts(void);
GASNET_PUBLIC void gasnet_wait_syncnbi_all(void);
GASNET_PUBLIC int gasnet_try_syncnbi_gets(void);
GASNET_PUBLIC int gasnet_try_syncnbi_puts(void);
GASNET_PUBLIC int gasnet_try_syncnbi_all(void);
GASNET_PUBLIC void gasnet_begin_nbi_accessregion(void);
GASNET_PUBLIC gasnet_handle_t gasnet_end_nbi_accessregion(void);

/* Values of 1 to 8 bytes, in registers. */
GASNET_PUBLIC void gasnet_put_val(gasnet_node_t node, void* destination, gasnet_register_value_t value,
                                  size_t bytes);
GASNET_PUBLIC gasnet_handle_t gasnet_put_nb_val(gasnet_node_t node, void* destination,
                                                gasnet_register_value_t value, size_t bytes);
GASNET_PUBLIC void gasnet_put_nbi_val(gasnet_node_t node, void* destination, gasnet_register_value_t value,
                                      size_t bytes);
GASNET_PUBLIC gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void* source, size_t bytes);
GASNET_PUBLIC gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void* source, size_t bytes);
GASNET_PUBLIC gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle);

/* Split-phase barriers. */
#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH 2
/* As GASNet 1.20 and later: every process passes it, and none an id. */
#define GASNET_BARRIERFLAG_UNNAMED GASNET_BARRIERFLAG_ANONYMOUS
GASNET_PUBLIC void gasnet_barrier_notify(int id, int flags);
GASNET_PUBLIC int gasnet_barrier_wait(int id, int flags);
GASNET_PUBLIC int gasnet_barrier_try(int id, int flags);
GASNET_PUBLIC int gasnet_barrier(int id, int flags); /* both phases */
/* The id of the last barrier. GASNET_ERR_RESOURCE: there was none. 1: it was anonymous everywhere. */
GASNET_PUBLIC int gasnet_barrier_result(int* id);

/* New memory of this process; NULL: there is none. For the tools of a GASNet tree. */
GASNET_PUBLIC void* gasneti_mmap(uintptr_t bytes);

#ifdef __cplusplus
}
#endif

#endif
