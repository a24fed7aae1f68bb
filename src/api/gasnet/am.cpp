// The C edge of apenet_am.h.
#include "api/gasnet/apenet_am.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/gasnet/interface.hpp"
#include "api/gasnet/messages.hpp"

namespace {

using apenet::gasnet::Category;
using apenet::gasnet::Library;
using apenet::gasnet::Message;

// The handlers of GASNet's own layers begin here.
constexpr std::uint8_t lowest_handler = 1;

Library& library() {
  return Library::instance();
}

int outcome(int result) {
  if (result == GASNET_OK) return APENET_AM_OK;
  return result == GASNET_ERR_RESOURCE ? APENET_AM_NO_RESOURCE : APENET_AM_BAD_ARGUMENT;
}

}  // namespace

extern "C" {

int apenet_am_init(int is_threaded) {
  using apenet::gasnet::Mode;
  using apenet::gasnet::Reach;
  return outcome(library().init(is_threaded != 0 ? Mode::par : Mode::seq, Reach::segment, lowest_handler));
}

uint32_t apenet_am_rank(void) {
  library().require_initialised("apenet_am_rank");
  return library().rank();
}

uint32_t apenet_am_count(void) {
  library().require_initialised("apenet_am_count");
  return library().rank_count();
}

uint32_t apenet_am_first_on_node(uint32_t rank) {
  library().require_initialised("apenet_am_first_on_node");
  return library().first_on_node(rank);
}

size_t apenet_am_max_segment(void) {
  return library().max_segment_bytes();
}

size_t apenet_am_max_long(void) {
  library().require_initialised("apenet_am_max_long");
  return library().conduit().max_long_bytes();
}

int apenet_am_attach(void (*const handlers[APENET_AM_HANDLERS])(void), size_t segment_bytes,
                     struct apenet_am_segment* segments) {
  library().require_initialised("apenet_am_attach");
  if (library().is_attached() || segment_bytes > library().max_segment_bytes()) return APENET_AM_BAD_ARGUMENT;
  std::vector<std::pair<std::uint8_t, apenet::gasnet::Handler>> numbered;
  for (unsigned index = lowest_handler; index < APENET_AM_HANDLERS; ++index)
    numbered.emplace_back(static_cast<std::uint8_t>(index), handlers[index]);
  const int result = library().attach(numbered, segment_bytes);
  std::ranges::transform(library().segments(), segments, [](const apenet::gasnet::Segment& segment) {
    return apenet_am_segment{reinterpret_cast<void*>(segment.address), segment.bytes};
  });
  return outcome(result);
}

void apenet_am_barrier(void) {
  library().require_no_handler("apenet_am_barrier");
  library().meet("apenet_am_barrier");
}

void apenet_am_exit(int code) {
  library().exit(code);
}

void apenet_am_poll(void) {
  library().require_no_handler("apenet_am_poll");
  library().poll();
}

void apenet_am_wait(void) {
  library().require_no_handler("apenet_am_wait");
  library().await_progress();
}

int apenet_am_request_short(uint32_t target, uint8_t handler, const int32_t* arguments, int count) {
  return outcome(apenet::gasnet::request(
      target, {"apenet_am_request_short", Category::short_message, handler, {}, arguments, count}));
}

int apenet_am_request_medium(uint32_t target, uint8_t handler, const void* source, size_t bytes,
                             const int32_t* arguments, int count) {
  return outcome(apenet::gasnet::request(
      target, {"apenet_am_request_medium", Category::medium, handler, {source, bytes}, arguments, count}));
}

int apenet_am_request_long(uint32_t target, uint8_t handler, const void* source, size_t bytes,
                           void* destination, const int32_t* arguments, int count) {
  return outcome(apenet::gasnet::request(target, {"apenet_am_request_long",
                                                  Category::long_message,
                                                  handler,
                                                  {source, bytes, destination},
                                                  arguments,
                                                  count}));
}

int apenet_am_reply_short(void* token, uint8_t handler, const int32_t* arguments, int count) {
  return outcome(apenet::gasnet::reply(
      token, {"apenet_am_reply_short", Category::short_message, handler, {}, arguments, count}));
}

int apenet_am_reply_medium(void* token, uint8_t handler, const void* source, size_t bytes,
                           const int32_t* arguments, int count) {
  return outcome(apenet::gasnet::reply(
      token, {"apenet_am_reply_medium", Category::medium, handler, {source, bytes}, arguments, count}));
}

int apenet_am_reply_long(void* token, uint8_t handler, const void* source, size_t bytes, void* destination,
                         const int32_t* arguments, int count) {
  return outcome(apenet::gasnet::reply(token, {"apenet_am_reply_long",
                                               Category::long_message,
                                               handler,
                                               {source, bytes, destination},
                                               arguments,
                                               count}));
}

uint32_t apenet_am_source(void* token) {
  return apenet::gasnet::running("apenet_am_source", token).message->source;
}

}  // extern "C"
