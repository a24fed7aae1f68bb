// The C edge of GASNet's core interface.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "api/gasnet/interface.hpp"
#include "api/gasnet/messages.hpp"
#include "api/gasnet/modes.hpp"
#include "api/gasnet/operations.hpp"

namespace {

using apenet::gasnet::Category;
using apenet::gasnet::Handler;
using apenet::gasnet::Library;
using apenet::gasnet::Running;
using apenet::gasnet::ThreadState;

Library& library() {
  return Library::instance();
}

struct Error {
  int number;
  const char* name;
  const char* text;
};
constexpr std::array errors{
    Error{GASNET_OK, "GASNET_OK", "no error"},
    Error{GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT",
          "GASNet is not initialised or attached, or is so already"},
    Error{GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE", "a resource that the call needs is missing"},
    Error{GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG", "an argument is not valid"},
    Error{GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY", "not finished yet"},
    Error{GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH", "the barrier's ids do not agree"},
};

const Error* error_of(int number) {
  const auto* const found = std::ranges::find(errors, number, &Error::number);
  return found == errors.end() ? nullptr : found;
}

// The handlers of the table, whose automatic indices are written into it. False: an index is not allowed.
bool number_handlers(std::span<gasnet_handlerentry_t> table, std::map<std::uint8_t, Handler>& numbered) {
  for (const gasnet_handlerentry_t& entry : table) {
    if (entry.fnptr == nullptr) return false;
    if (entry.index == 0) continue;
    if (entry.index < Library::first_client_handler || !numbered.emplace(entry.index, entry.fnptr).second)
      return false;
  }
  unsigned next = Library::first_client_handler;
  for (gasnet_handlerentry_t& entry : table) {
    if (entry.index != 0) continue;
    while (next <= UINT8_MAX && numbered.contains(static_cast<std::uint8_t>(next))) ++next;
    if (next > UINT8_MAX) return false;
    entry.index = static_cast<gasnet_handler_t>(next);
    numbered.emplace(entry.index, entry.fnptr);
  }
  return true;
}

std::uint64_t this_thread() {
  return reinterpret_cast<std::uint64_t>(&Library::thread());
}

// In PAR and PARSYNC threads compete for locks; in SEQ there is one thread.
std::atomic_ref<std::uint64_t> owner_of(gasnet_hsl_t* lock) {
  return std::atomic_ref(lock->owner);
}

bool try_lock(gasnet_hsl_t* lock) {
  std::uint64_t nobody = 0;
  if (!owner_of(lock).compare_exchange_strong(nobody, this_thread())) return false;
  ++Library::thread().locks_held;
  return true;
}

}  // namespace

namespace apenet::gasnet {

int init(Mode mode, Reach reach) {
  const int result = library().init(mode, reach);
  if (result == GASNET_OK) begin_operations(library());
  return result;
}

}  // namespace apenet::gasnet

extern "C" {

const char* gasnet_ErrorName(int error) {
  const Error* const found = error_of(error);
  return found == nullptr ? "*unknown*" : found->name;
}

const char* gasnet_ErrorDesc(int error) {
  const Error* const found = error_of(error);
  return found == nullptr ? "no description available" : found->text;
}

void gasneti_unsafe(int error, const char* call, const char* file, int line) {
  library().fatal(call, std::string(gasnet_ErrorName(error)) + " (" + gasnet_ErrorDesc(error) + "), at " +
                            file + ":" + std::to_string(line));
}

int gasnet_attach(gasnet_handlerentry_t* table, int entries, uintptr_t segment_bytes,
                  uintptr_t /*min_heap_offset*/) {
  if (!library().is_initialised() || library().is_attached()) return GASNET_ERR_NOT_INIT;
  std::map<std::uint8_t, Handler> numbered;
  const bool has_segment = library().reach() == apenet::gasnet::Reach::segment;
  const bool fits = segment_bytes % GASNET_PAGESIZE == 0 && segment_bytes <= library().max_segment_bytes();
  if (entries < 0 || (table == nullptr && entries > 0) || (has_segment && !fits) ||
      !number_handlers({table, static_cast<std::size_t>(entries)}, numbered))
    return GASNET_ERR_BAD_ARG;
  const std::vector<std::pair<std::uint8_t, Handler>> handlers(numbered.begin(), numbered.end());
  return library().attach(handlers, segment_bytes);
}

void gasnet_exit(int code) {
  library().exit(code);
}

gasnet_node_t gasnet_mynode(void) {
  if (!library().is_initialised()) library().fatal("gasnet_mynode", "called before gasnet_init");
  return library().rank();
}

gasnet_node_t gasnet_nodes(void) {
  if (!library().is_initialised()) library().fatal("gasnet_nodes", "called before gasnet_init");
  return library().rank_count();
}

uintptr_t gasnet_getMaxLocalSegmentSize(void) {
  return library().max_segment_bytes();
}

uintptr_t gasnet_getMaxGlobalSegmentSize(void) {
  return library().max_segment_bytes();
}

int gasnet_getSegmentInfo(gasnet_seginfo_t* table, int entries) {
  if (!library().is_attached()) return GASNET_ERR_NOT_INIT;
  if (table == nullptr || entries < static_cast<int>(library().rank_count())) return GASNET_ERR_BAD_ARG;
  std::ranges::transform(library().segments(), table, [](const apenet::gasnet::Segment& segment) {
    return gasnet_seginfo_t{reinterpret_cast<void*>(segment.address), segment.bytes};
  });
  return GASNET_OK;
}

int gasnet_getNodeInfo(gasnet_nodeinfo_t* table, int entries) {
  if (!library().is_initialised()) return GASNET_ERR_NOT_INIT;
  if (table == nullptr || entries < static_cast<int>(library().rank_count())) return GASNET_ERR_BAD_ARG;
  for (gasnet_node_t rank = 0; rank < library().rank_count(); ++rank) {
    const gasnet_node_t first = library().first_on_node(rank);
    table[rank] = {first, first};
  }
  return GASNET_OK;
}

char* gasnet_getenv(const char* name) {
  return std::getenv(name);
}

int gasnet_set_waitmode(int mode) {
  return mode < GASNET_WAIT_SPIN || mode > GASNET_WAIT_SPINBLOCK ? GASNET_ERR_BAD_ARG : GASNET_OK;
}

size_t gasnet_AMMaxArgs(void) {
  return apenet::gasnet::max_arguments;
}

size_t gasnet_AMMaxMedium(void) {
  return apenet::gasnet::max_medium_bytes;
}

size_t gasnet_AMMaxLongRequest(void) {
  library().require_initialised("gasnet_AMMaxLongRequest");
  return library().conduit().max_long_bytes();
}

size_t gasnet_AMMaxLongReply(void) {
  library().require_initialised("gasnet_AMMaxLongReply");
  return library().conduit().max_long_bytes();
}

void* gasneti_mmap(uintptr_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

int gasnet_AMPoll(void) {
  if (!library().is_attached()) return GASNET_ERR_NOT_INIT;
  library().require_no_handler("gasnet_AMPoll");
  library().poll();
  return GASNET_OK;
}

int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t* source) {
  const Running* const now = Library::thread().running;
  if (now == nullptr || now != token || source == nullptr) return GASNET_ERR_BAD_ARG;
  *source = now->message->source;
  return GASNET_OK;
}

int gasneti_request_short(gasnet_node_t target, gasnet_handler_t handler,
                          const gasnet_handlerarg_t* arguments, int count) {
  return apenet::gasnet::request(
      target, {"gasnet_AMRequestShort", Category::short_message, handler, {}, arguments, count});
}

int gasneti_request_medium(gasnet_node_t target, gasnet_handler_t handler, const void* source, size_t bytes,
                           const gasnet_handlerarg_t* arguments, int count) {
  return apenet::gasnet::request(
      target, {"gasnet_AMRequestMedium", Category::medium, handler, {source, bytes}, arguments, count});
}

int gasneti_request_long(gasnet_node_t target, gasnet_handler_t handler, const void* source, size_t bytes,
                         void* destination, int is_async, const gasnet_handlerarg_t* arguments, int count) {
  const char* const call = is_async != 0 ? "gasnet_AMRequestLongAsync" : "gasnet_AMRequestLong";
  return apenet::gasnet::request(
      target, {call, Category::long_message, handler, {source, bytes, destination}, arguments, count});
}

int gasneti_reply_short(gasnet_token_t token, gasnet_handler_t handler, const gasnet_handlerarg_t* arguments,
                        int count) {
  return apenet::gasnet::reply(
      token, {"gasnet_AMReplyShort", Category::short_message, handler, {}, arguments, count});
}

int gasneti_reply_medium(gasnet_token_t token, gasnet_handler_t handler, const void* source, size_t bytes,
                         const gasnet_handlerarg_t* arguments, int count) {
  return apenet::gasnet::reply(
      token, {"gasnet_AMReplyMedium", Category::medium, handler, {source, bytes}, arguments, count});
}

int gasneti_reply_long(gasnet_token_t token, gasnet_handler_t handler, const void* source, size_t bytes,
                       void* destination, const gasnet_handlerarg_t* arguments, int count) {
  return apenet::gasnet::reply(token, {"gasnet_AMReplyLong",
                                       Category::long_message,
                                       handler,
                                       {source, bytes, destination},
                                       arguments,
                                       count});
}

void gasneti_await_progress(void) {
  library().require_no_handler("GASNET_BLOCKUNTIL");
  library().await_progress();
}

void gasnet_hsl_init(gasnet_hsl_t* lock) {
  lock->owner = 0;
}

void gasnet_hsl_destroy(gasnet_hsl_t* lock) {
  if (owner_of(lock).load() != 0) library().fatal("gasnet_hsl_destroy", "the lock is held");
}

void gasnet_hsl_lock(gasnet_hsl_t* lock) {
  if (owner_of(lock).load() == this_thread())
    library().fatal("gasnet_hsl_lock", "this thread holds the lock already");
  while (!try_lock(lock)) std::this_thread::yield();
}

int gasnet_hsl_trylock(gasnet_hsl_t* lock) {
  return try_lock(lock) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gasnet_hsl_unlock(gasnet_hsl_t* lock) {
  if (owner_of(lock).load() != this_thread())
    library().fatal("gasnet_hsl_unlock", "this thread does not hold the lock");
  --Library::thread().locks_held;
  owner_of(lock).store(0);
}

void gasnet_hold_interrupts(void) {
  ThreadState& state = Library::thread();
  if (state.running != nullptr || state.locks_held > 0) return;  // held already, by the specification
  if (state.holds_interrupts) library().fatal("gasnet_hold_interrupts", "called in a no-interrupt section");
  state.holds_interrupts = true;
}

void gasnet_resume_interrupts(void) {
  ThreadState& state = Library::thread();
  if (state.running != nullptr || state.locks_held > 0) return;
  if (!state.holds_interrupts)
    library().fatal("gasnet_resume_interrupts", "called outside a no-interrupt section");
  state.holds_interrupts = false;
}

}  // extern "C"
