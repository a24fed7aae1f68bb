#include "api/gasnet/messages.hpp"

#include "api/gasnet/interface.hpp"

namespace apenet::gasnet {
namespace {

Outgoing outgoing(const Message& message, bool is_reply) {
  const auto count = static_cast<std::uint8_t>(message.argument_count);
  const Payload& payload = message.payload;
  return {.header = {.category = message.category,
                     .is_reply = is_reply,
                     .argument_count = count,
                     .handler = message.handler,
                     .payload_bytes = static_cast<std::uint32_t>(payload.bytes)},
          .arguments = {message.arguments, count},
          .payload = {static_cast<const std::byte*>(payload.source), payload.bytes},
          .destination = static_cast<std::byte*>(payload.destination)};
}

// GASNET_OK, or what is wrong with a message to `target`.
int check(std::uint32_t target, const Message& message) {
  Library& library = Library::instance();
  const Payload& payload = message.payload;
  if (target >= library.rank_count() || message.handler < library.lowest_handler() ||
      message.argument_count < 0 || message.argument_count > static_cast<int>(max_arguments))
    return GASNET_ERR_BAD_ARG;
  if (payload.source == nullptr && payload.bytes > 0) return GASNET_ERR_BAD_ARG;
  if (message.category == Category::medium && payload.bytes > max_medium_bytes) return GASNET_ERR_BAD_ARG;
  if (message.category != Category::long_message) return GASNET_OK;
  const bool fits = payload.bytes <= library.conduit().max_long_bytes() &&
                    library.is_in_segment(target, payload.destination, payload.bytes);
  return fits ? GASNET_OK : GASNET_ERR_BAD_ARG;
}

}  // namespace

int request(std::uint32_t target, const Message& message) {
  Library& library = Library::instance();
  if (!library.is_attached()) return GASNET_ERR_NOT_INIT;
  library.require_no_handler(message.call);
  const int wrong = check(target, message);
  if (wrong != GASNET_OK) return wrong;
  library.request(target, outgoing(message, false));
  return GASNET_OK;
}

Running& running(std::string_view call, const void* token) {
  Running* const now = Library::thread().running;
  if (now == nullptr || now != token)
    Library::instance().fatal(call, "the token is not that of the handler that runs in this thread");
  return *now;
}

int reply(void* token, const Message& message) {
  Library& library = Library::instance();
  Running& to = running(message.call, token);
  if (to.message->header.is_reply) library.fatal(message.call, "a handler of a reply may not reply");
  if (to.has_replied) library.fatal(message.call, "a handler may reply only once");
  if (Library::thread().locks_held > 0) library.fatal(message.call, "called with a handler-safe lock held");
  const int wrong = check(to.message->source, message);
  if (wrong != GASNET_OK) return wrong;
  library.reply(to, outgoing(message, true));
  return GASNET_OK;
}

}  // namespace apenet::gasnet
