/* Active Messages on the cards of the simulator: the part of GASNet-1 that a conduit writes itself. GASNet's
 * own layers call it, in a source tree whose conduit is extoll-conduit/, so nothing here has a name of
 * GASNet's. Messages, limits and costs are those of libgasnet (docs/apis/gasnet.md).
 *
 * Link libapenet-am.so: apenet cc --am. Sizes are bytes. A misuse that GASNet forbids ends the process with
 * node, call and reason on standard error. */
#ifndef APENET_AM_H
#define APENET_AM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define APENET_AM_PUBLIC __attribute__((visibility("default")))

#define APENET_AM_MAX_ARGUMENTS 16
#define APENET_AM_MAX_MEDIUM 8192
#define APENET_AM_HANDLERS 256

/* Results. */
#define APENET_AM_OK 0
#define APENET_AM_BAD_ARGUMENT                                                                            \
  1                             /* node, handler, number of arguments, size, or memory out of the segment \
                                 */
#define APENET_AM_NO_RESOURCE 2 /* no simulation, no card, no memory: standard error says which */

struct apenet_am_segment {
  void* address;
  size_t bytes;
};

/* Joins the run. is_threaded: several threads of this process call the library. */
APENET_AM_PUBLIC int apenet_am_init(int is_threaded);
APENET_AM_PUBLIC uint32_t apenet_am_rank(void);
APENET_AM_PUBLIC uint32_t apenet_am_count(void);
/* The first process of the node of this one. */
APENET_AM_PUBLIC uint32_t apenet_am_first_on_node(uint32_t rank);
APENET_AM_PUBLIC size_t apenet_am_max_segment(void);
APENET_AM_PUBLIC size_t apenet_am_max_long(void);

/* Collective, once. Maps a segment of this process, and gives those of all, by rank. The handlers, by index,
 * are void f(void* token, int32_t...) for short messages, and void f(void* token, void* payload, size_t
 * bytes, int32_t...) for the others. A message to a NULL one is fatal. */
APENET_AM_PUBLIC int apenet_am_attach(void (*const handlers[APENET_AM_HANDLERS])(void), size_t segment_bytes,
                                      struct apenet_am_segment* segments);
/* Collective; runs handlers meanwhile. */
APENET_AM_PUBLIC void apenet_am_barrier(void);
/* With code 0 it waits a while for the other processes, as gasnet_exit() does. */
APENET_AM_PUBLIC void apenet_am_exit(int code) __attribute__((noreturn));

/* Polls the card once, and runs the handlers that are due. Do not call it in a handler. */
APENET_AM_PUBLIC void apenet_am_poll(void);
/* Waits for a message, and runs the handlers that are due; polls instead if this process has several threads
 * and is_threaded, because another one may run the handler. Do not call it in a handler. */
APENET_AM_PUBLIC void apenet_am_wait(void);

/* Requests wait for credits and for the network, and run handlers meanwhile. Do not call them in a handler.
 * The sources are free afterwards. `destination` is in the target's segment. */
APENET_AM_PUBLIC int apenet_am_request_short(uint32_t target, uint8_t handler, const int32_t* arguments,
                                             int count);
APENET_AM_PUBLIC int apenet_am_request_medium(uint32_t target, uint8_t handler, const void* source,
                                              size_t bytes, const int32_t* arguments, int count);
APENET_AM_PUBLIC int apenet_am_request_long(uint32_t target, uint8_t handler, const void* source,
                                            size_t bytes, void* destination, const int32_t* arguments,
                                            int count);

/* Call at most one of these, in the handler of a request, with its token. */
APENET_AM_PUBLIC int apenet_am_reply_short(void* token, uint8_t handler, const int32_t* arguments, int count);
APENET_AM_PUBLIC int apenet_am_reply_medium(void* token, uint8_t handler, const void* source, size_t bytes,
                                            const int32_t* arguments, int count);
APENET_AM_PUBLIC int apenet_am_reply_long(void* token, uint8_t handler, const void* source, size_t bytes,
                                          void* destination, const int32_t* arguments, int count);
/* Call in a handler: returns the sender of its message. */
APENET_AM_PUBLIC uint32_t apenet_am_source(void* token);

#ifdef __cplusplus
}
#endif
#endif
