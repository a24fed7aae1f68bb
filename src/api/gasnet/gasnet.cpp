// The C edge of GASNet's core interface.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "api/gasnet/interface.hpp"
#include "api/gasnet/modes.hpp"
#include "api/gasnet/operations.hpp"

namespace {

using apenet::gasnet::Argument;
using apenet::gasnet::Category;
using apenet::gasnet::Handler;
using apenet::gasnet::Library;
using apenet::gasnet::Outgoing;
using apenet::gasnet::Running;
using apenet::gasnet::ThreadState;

Library& library() {
  return Library::instance();
}

struct Payload {
  const void* source = nullptr;
  std::size_t bytes = 0;
  void* destination = nullptr;
};

Outgoing outgoing(Category category, bool is_reply, gasnet_handler_t handler, const Payload& payload,
                  const gasnet_handlerarg_t* arguments, int count) {
  const auto argument_count = static_cast<std::uint8_t>(count);
  return {.header = {.category = category,
                     .is_reply = is_reply,
                     .argument_count = argument_count,
                     .handler = handler,
                     .payload_bytes = static_cast<std::uint32_t>(payload.bytes)},
          .arguments = {arguments, argument_count},
          .payload = {static_cast<const std::byte*>(payload.source), payload.bytes},
          .destination = static_cast<std::byte*>(payload.destination)};
}

// GASNET_OK, or what is wrong with a message to `target`.
int check_message(Category category, std::uint32_t target, gasnet_handler_t handler, const Payload& payload,
                  int count) {
  if (target >= library().rank_count() || handler < Library::first_client_handler || count < 0 ||
      count > static_cast<int>(apenet::gasnet::max_arguments))
    return GASNET_ERR_BAD_ARG;
  if (payload.source == nullptr && payload.bytes > 0) return GASNET_ERR_BAD_ARG;
  if (category == Category::medium && payload.bytes > apenet::gasnet::max_medium_bytes)
    return GASNET_ERR_BAD_ARG;
  if (category != Category::long_message) return GASNET_OK;
  const bool fits = payload.bytes <= library().conduit().max_long_bytes() &&
                    library().is_in_segment(target, payload.destination, payload.bytes);
  return fits ? GASNET_OK : GASNET_ERR_BAD_ARG;
}

int request(const char* call, Category category, gasnet_node_t target, gasnet_handler_t handler,
            const Payload& payload, const gasnet_handlerarg_t* arguments, int count) {
  if (!library().is_attached()) return GASNET_ERR_NOT_INIT;
  library().require_no_handler(call);
  const int wrong = check_message(category, target, handler, payload, count);
  if (wrong != GASNET_OK) return wrong;
  library().request(target, outgoing(category, false, handler, payload, arguments, count));
  return GASNET_OK;
}

// The handler that runs in this thread, and whose token this is.
Running& running(const char* call, gasnet_token_t token) {
  Running* const now = Library::thread().running;
  if (now == nullptr || now != token)
    library().fatal(call, "the token is not that of the handler that runs in this thread");
  return *now;
}

int reply(const char* call, Category category, gasnet_token_t token, gasnet_handler_t handler,
          const Payload& payload, const gasnet_handlerarg_t* arguments, int count) {
  Running& to = running(call, token);
  if (to.message->header.is_reply) library().fatal(call, "a handler of a reply may not reply");
  if (to.has_replied) library().fatal(call, "a handler may reply only once");
  if (Library::thread().locks_held > 0) library().fatal(call, "called with a handler-safe lock held");
  const int wrong = check_message(category, to.message->source, handler, payload, count);
  if (wrong != GASNET_OK) return wrong;
  library().reply(to, outgoing(category, true, handler, payload, arguments, count));
  return GASNET_OK;
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

int init(Mode mode) {
  const int result = library().init(mode);
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
  if (entries < 0 || (table == nullptr && entries > 0) || segment_bytes % GASNET_PAGESIZE != 0 ||
      segment_bytes > library().max_segment_bytes() ||
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
  apenet::ipc::Client& client = library().conduit().card().client();
  std::map<std::uint32_t, gasnet_node_t> first_of;
  for (gasnet_node_t rank = 0; rank < library().rank_count(); ++rank) {
    const gasnet_node_t first = first_of.emplace(client.node_of(rank), rank).first->second;
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
  return request("gasnet_AMRequestShort", Category::short_message, target, handler, {}, arguments, count);
}

int gasneti_request_medium(gasnet_node_t target, gasnet_handler_t handler, const void* source, size_t bytes,
                           const gasnet_handlerarg_t* arguments, int count) {
  return request("gasnet_AMRequestMedium", Category::medium, target, handler, {source, bytes}, arguments,
                 count);
}

int gasneti_request_long(gasnet_node_t target, gasnet_handler_t handler, const void* source, size_t bytes,
                         void* destination, int is_async, const gasnet_handlerarg_t* arguments, int count) {
  const char* const call = is_async != 0 ? "gasnet_AMRequestLongAsync" : "gasnet_AMRequestLong";
  return request(call, Category::long_message, target, handler, {source, bytes, destination}, arguments,
                 count);
}

int gasneti_reply_short(gasnet_token_t token, gasnet_handler_t handler, const gasnet_handlerarg_t* arguments,
                        int count) {
  return reply("gasnet_AMReplyShort", Category::short_message, token, handler, {}, arguments, count);
}

int gasneti_reply_medium(gasnet_token_t token, gasnet_handler_t handler, const void* source, size_t bytes,
                         const gasnet_handlerarg_t* arguments, int count) {
  return reply("gasnet_AMReplyMedium", Category::medium, token, handler, {source, bytes}, arguments, count);
}

int gasneti_reply_long(gasnet_token_t token, gasnet_handler_t handler, const void* source, size_t bytes,
                       void* destination, const gasnet_handlerarg_t* arguments, int count) {
  return reply("gasnet_AMReplyLong", Category::long_message, token, handler, {source, bytes, destination},
               arguments, count);
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
