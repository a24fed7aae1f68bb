/* GASNet's conduit for EXTOLL: the core interface over libapenet-am, which cuts messages into VELO packets,
 * moves long payloads by RMA and keeps the credits. GASNet itself does the rest. */
#include <gasnet_core_internal.h>
/* GASNet's configuration comes first. */
#include <apenet_am.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

GASNETI_IDENT(gasnetc_IdentString_Version, "$GASNetCoreLibraryVersion: " GASNET_CORE_VERSION_STR " $");
GASNETI_IDENT(gasnetc_IdentString_Name, "$GASNetCoreLibraryName: " GASNET_CORE_NAME_STR " $");

gasneti_handler_fn_t gasnetc_handler[GASNETC_MAX_NUMHANDLERS];

/* The core's own handlers, for GASNet's tables. */
static gasnet_handlerentry_t const gasnetc_handlers[] = {{0, NULL}};
gasnet_handlerentry_t const* gasnetc_get_handlertable(void) {
  return gasnetc_handlers;
}

/* Job control */

static void gasnetc_find_nodes(void) {
  gasneti_nodemap = (gasnet_node_t*)gasneti_malloc(gasneti_nodes * sizeof *gasneti_nodemap);
  for (gasnet_node_t node = 0; node < gasneti_nodes; ++node)
    gasneti_nodemap[node] = (gasnet_node_t)apenet_am_first_on_node(node);
  gasneti_nodemapParse();
}

static int gasnetc_init(void) {
  gasneti_check_config_preinit();
  if (gasneti_init_done) GASNETI_RETURN_ERRR(NOT_INIT, "gasnet_init has been called before");
  gasneti_freezeForDebugger();
#if GASNETI_CLIENT_THREADS
  const int is_threaded = 1;
#else
  const int is_threaded = 0;
#endif
  if (apenet_am_init(is_threaded) != APENET_AM_OK)
    GASNETI_RETURN_ERRR(RESOURCE, "this process has no EXTOLL card");
  gasneti_mynode = (gasnet_node_t)apenet_am_rank();
  gasneti_nodes = (gasnet_node_t)apenet_am_count();
  gasnetc_find_nodes();
#if !GASNET_SEGMENT_EVERYTHING
  gasneti_MaxLocalSegmentSize = apenet_am_max_segment();
  gasneti_MaxGlobalSegmentSize = apenet_am_max_segment();
#endif
  gasneti_init_done = 1;
  gasneti_auxseg_init();
  return GASNET_OK;
}

extern int gasnet_init(int* argc, char*** argv) {
  const int result = gasnetc_init();
  if (result != GASNET_OK) GASNETI_RETURN(result);
  gasneti_trace_init(argc, argv);
  return GASNET_OK;
}

/* Enters the handlers of a table that ends with a NULL function; the indices are from `low` to `high`. */
static int gasnetc_register(gasnet_handlerentry_t const* table, int low, int high) {
  int entries = 0;
  int entered = 0;
  while (table[entries].fnptr != NULL) ++entries;
  return gasneti_amregister((gasnet_handlerentry_t*)table, entries, low, high, 0, &entered);
}

static int gasnetc_register_all(gasnet_handlerentry_t* table, int numentries) {
  for (int index = 0; index < GASNETC_MAX_NUMHANDLERS; ++index)
    gasnetc_handler[index] = (gasneti_handler_fn_t)&gasneti_defaultAMHandler;
  if (gasnetc_register(gasnetc_get_handlertable(), 1, 63) != GASNET_OK)
    GASNETI_RETURN_ERRR(RESOURCE, "the core's handlers");
  if (gasnetc_register(gasnete_get_handlertable(), 64, 127) != GASNET_OK)
    GASNETI_RETURN_ERRR(RESOURCE, "the extended interface's handlers");
  if (table == NULL) return GASNET_OK;
  int entered = 0;
  if (gasneti_amregister(table, numentries, 128, 255, 0, &entered) != GASNET_OK)
    GASNETI_RETURN_ERRR(RESOURCE, "a handler with an index of its own");
  if (gasneti_amregister(table, numentries, 128, 255, 1, &entered) != GASNET_OK)
    GASNETI_RETURN_ERRR(RESOURCE, "a handler whose index GASNet chooses");
  return GASNET_OK;
}

static void gasnetc_leave(int code, void* nothing) {
  (void)nothing;
  gasnetc_exit(code);
}

static int gasnetc_attach_segments(uintptr_t segsize) {
  gasneti_seginfo = (gasnet_seginfo_t*)gasneti_malloc(gasneti_nodes * sizeof *gasneti_seginfo);
  gasneti_leak(gasneti_seginfo);
  struct apenet_am_segment* segments =
      (struct apenet_am_segment*)gasneti_malloc(gasneti_nodes * sizeof *segments);
  const int result =
      apenet_am_attach((void (*const*)(void))(uintptr_t)gasnetc_handler, (size_t)segsize, segments);
  for (gasnet_node_t node = 0; result == APENET_AM_OK && node < gasneti_nodes; ++node) {
    gasneti_seginfo[node].addr = segments[node].address;
    gasneti_seginfo[node].size = segments[node].bytes;
  }
  gasneti_free(segments);
  return result;
}

extern int gasnetc_attach(gasnet_handlerentry_t* table, int numentries, uintptr_t segsize,
                          uintptr_t minheapoffset) {
  GASNETI_TRACE_PRINTF(C, ("gasnetc_attach(table (%i entries), segsize=%lu, minheapoffset=%lu)", numentries,
                           (unsigned long)segsize, (unsigned long)minheapoffset));
  if (!gasneti_init_done) GASNETI_RETURN_ERRR(NOT_INIT, "gasnet_attach comes after gasnet_init");
  if (gasneti_attach_done) GASNETI_RETURN_ERRR(NOT_INIT, "gasnet_attach has been called before");
  if (segsize % GASNET_PAGESIZE != 0) GASNETI_RETURN_ERRR(BAD_ARG, "the segment is not a number of pages");
  if (segsize > gasneti_MaxLocalSegmentSize) GASNETI_RETURN_ERRR(BAD_ARG, "the segment is too large");
  const int result = gasnetc_register_all(table, numentries);
  if (result != GASNET_OK) GASNETI_RETURN(result);
  gasneti_registerSignalHandlers(gasneti_defaultSignalHandler);
  on_exit(gasnetc_leave, NULL);
  /* GASNet keeps a part of the segment for itself. */
  if (gasnetc_attach_segments(gasneti_auxseg_preattach(segsize)) != APENET_AM_OK)
    GASNETI_RETURN_ERRR(RESOURCE, "there is no memory for the segment");
  if (gasnet_client_attach_hook != NULL)
    gasnet_client_attach_hook(gasneti_seginfo[gasneti_mynode].addr, gasneti_seginfo[gasneti_mynode].size);
  gasneti_attach_done = 1;
  apenet_am_barrier();
  gasneti_auxseg_attach();
  gasnete_init();
  gasneti_nodemapFini();
  apenet_am_barrier(); /* nobody sends to an extended interface that has not begun */
  return GASNET_OK;
}

extern void gasnetc_exit(int exitcode) {
  gasneti_reghandler(SIGQUIT, SIG_IGN);
  GASNETI_TRACE_PRINTF(C, ("gasnet_exit(%i)\n", exitcode));
  gasneti_flush_streams();
  gasneti_trace_finish();
  apenet_am_exit(exitcode);
}

/* Active Messages */

extern size_t gasnetc_AMMaxLong(void) {
  return apenet_am_max_long();
}

extern int gasnetc_AMGetMsgSource(gasnet_token_t token, gasnet_node_t* srcindex) {
  GASNETI_CHECKATTACH();
  GASNETI_CHECK_ERRR((!token), BAD_ARG, "token");
  GASNETI_CHECK_ERRR((!srcindex), BAD_ARG, "srcindex");
  *srcindex = (gasnet_node_t)apenet_am_source(token);
  return GASNET_OK;
}

extern int gasnetc_AMPoll(void) {
  GASNETI_CHECKATTACH();
  apenet_am_poll();
  return GASNET_OK;
}

extern void gasnetc_AMWait(void) {
  GASNETI_CHECKATTACH();
  apenet_am_wait();
}

/* The arguments that follow `last`, as an array. */
#define GASNETC_READ_ARGUMENTS(last)                                                \
  int32_t arguments[APENET_AM_MAX_ARGUMENTS];                                       \
  do {                                                                              \
    va_list list;                                                                   \
    va_start(list, last);                                                           \
    for (int place = 0; place < (last) && place < APENET_AM_MAX_ARGUMENTS; ++place) \
      arguments[place] = (int32_t)va_arg(list, gasnet_handlerarg_t);                \
    va_end(list);                                                                   \
  } while (0)

static int gasnetc_result(int code) {
  if (code != APENET_AM_OK) GASNETI_RETURN_ERRR(BAD_ARG, "node, handler, arguments, size or memory");
  return GASNET_OK;
}

extern int gasnetc_AMRequestShortM(gasnet_node_t dest, gasnet_handler_t handler, int numargs, ...) {
  GASNETI_COMMON_AMREQUESTSHORT(dest, handler, numargs);
  GASNETC_READ_ARGUMENTS(numargs);
  gasneti_AMPoll();
  return gasnetc_result(apenet_am_request_short(dest, handler, arguments, numargs));
}

extern int gasnetc_AMRequestMediumM(gasnet_node_t dest, gasnet_handler_t handler, void* source_addr,
                                    size_t nbytes, int numargs, ...) {
  GASNETI_COMMON_AMREQUESTMEDIUM(dest, handler, source_addr, nbytes, numargs);
  GASNETC_READ_ARGUMENTS(numargs);
  gasneti_AMPoll();
  return gasnetc_result(apenet_am_request_medium(dest, handler, source_addr, nbytes, arguments, numargs));
}

extern int gasnetc_AMRequestLongM(gasnet_node_t dest, gasnet_handler_t handler, void* source_addr,
                                  size_t nbytes, void* dest_addr, int numargs, ...) {
  GASNETI_COMMON_AMREQUESTLONG(dest, handler, source_addr, nbytes, dest_addr, numargs);
  GASNETC_READ_ARGUMENTS(numargs);
  gasneti_AMPoll();
  return gasnetc_result(
      apenet_am_request_long(dest, handler, source_addr, nbytes, dest_addr, arguments, numargs));
}

/* The library returns when the source may change: earlier than a client of LongAsync may expect. */
extern int gasnetc_AMRequestLongAsyncM(gasnet_node_t dest, gasnet_handler_t handler, void* source_addr,
                                       size_t nbytes, void* dest_addr, int numargs, ...) {
  GASNETI_COMMON_AMREQUESTLONGASYNC(dest, handler, source_addr, nbytes, dest_addr, numargs);
  GASNETC_READ_ARGUMENTS(numargs);
  gasneti_AMPoll();
  return gasnetc_result(
      apenet_am_request_long(dest, handler, source_addr, nbytes, dest_addr, arguments, numargs));
}

extern int gasnetc_AMReplyShortM(gasnet_token_t token, gasnet_handler_t handler, int numargs, ...) {
  GASNETI_COMMON_AMREPLYSHORT(token, handler, numargs);
  GASNETC_READ_ARGUMENTS(numargs);
  return gasnetc_result(apenet_am_reply_short(token, handler, arguments, numargs));
}

extern int gasnetc_AMReplyMediumM(gasnet_token_t token, gasnet_handler_t handler, void* source_addr,
                                  size_t nbytes, int numargs, ...) {
  GASNETI_COMMON_AMREPLYMEDIUM(token, handler, source_addr, nbytes, numargs);
  GASNETC_READ_ARGUMENTS(numargs);
  return gasnetc_result(apenet_am_reply_medium(token, handler, source_addr, nbytes, arguments, numargs));
}

extern int gasnetc_AMReplyLongM(gasnet_token_t token, gasnet_handler_t handler, void* source_addr,
                                size_t nbytes, void* dest_addr, int numargs, ...) {
  GASNETI_COMMON_AMREPLYLONG(token, handler, source_addr, nbytes, dest_addr, numargs);
  GASNETC_READ_ARGUMENTS(numargs);
  return gasnetc_result(
      apenet_am_reply_long(token, handler, source_addr, nbytes, dest_addr, arguments, numargs));
}

/* Handler-safe locks */

extern void gasnetc_hsl_init(gasnet_hsl_t* hsl) {
  gasneti_mutex_init(&hsl->lock);
}

extern void gasnetc_hsl_destroy(gasnet_hsl_t* hsl) {
  gasneti_mutex_destroy(&hsl->lock);
}

extern void gasnetc_hsl_lock(gasnet_hsl_t* hsl) {
  gasneti_mutex_lock(&hsl->lock);
}

extern void gasnetc_hsl_unlock(gasnet_hsl_t* hsl) {
  gasneti_mutex_unlock(&hsl->lock);
}

extern int gasnetc_hsl_trylock(gasnet_hsl_t* hsl) {
  return gasneti_mutex_trylock(&hsl->lock) == 0 ? GASNET_OK : GASNET_ERR_NOT_READY;
}
