// A system call for a socket of the simulated node, and its answer: the inline payloads of
// RequestVerb::socket and of the Event that follows it.
//
// The node's sockets are the simulator's (ip/sockets.hpp). The process waits for the answer of each call.
#pragma once

#include <cstdint>

namespace apenet::ipc {

enum class SocketVerb : std::uint8_t {
  open,      // `value`: 1 for datagrams
  bind,      // endpoint
  listen,    // `value`: the backlog
  connect,   // endpoint; `value`: the negative errno of a wrong address, or 0
  accept,    // the result is the new socket; answer: endpoint
  send,      // the buffer is read; endpoint, if `has_endpoint`; `value`: as for connect
  receive,   // the buffer is written; answer: endpoint
  shutdown,  // `value`: as in the call
  close,
  local,   // answer: endpoint
  remote,  // answer: endpoint
  set,     // `option`, a number of ip::SocketOption, and `value`
  get,     // `option`
  poll,    // the buffer is an array of SocketPoll
  cancel,  // ends the wait of the call with the message `value`
  disconnect,
};
inline constexpr std::uint8_t socket_verb_count = 16;

enum SocketFlag : std::uint8_t {
  no_wait = 1,
  only_peeks = 2,    // MSG_PEEK
  takes_all = 4,     // MSG_WAITALL
  has_endpoint = 8,  // a send to this endpoint
  more_follows = 16,
  only_counts = 32,  // MSG_TRUNC: the bytes of a stream are not written
};

struct SocketEndpoint {
  std::uint32_t address = 0;  // in the order of the host
  std::uint32_t port = 0;
};

struct SocketCall {
  SocketVerb verb = SocketVerb::open;
  std::uint8_t flags = 0;  // SocketFlag
  std::uint16_t option = 0;
  std::uint32_t socket = 0;
  std::uint32_t process = 0;  // it has the buffer; 0: the rank's own process
  SocketEndpoint endpoint{};
  std::int64_t value = 0;
  std::int64_t most_ps = -1;  // how long it may wait, from the time of the request; -1: for ever
};

struct SocketAnswer {
  std::int64_t result = 0;  // below zero: a negative errno
  SocketEndpoint endpoint{};
};

// As pollfd. skips: `changes` as last reported to an edge-triggered wait, which only what has come since
// ends.
struct SocketPoll {
  std::uint32_t socket = 0;
  std::int16_t events = 0;
  std::int16_t revents = 0;
  std::uint64_t changes = 0;  // written
  std::uint64_t skips = UINT64_MAX;
};

}  // namespace apenet::ipc
