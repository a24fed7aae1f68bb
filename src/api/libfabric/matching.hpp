// Matching: posted receives against arrived messages, in the order that MPI and libfabric ask for.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/libfabric/pool.hpp"
#include "api/libfabric/wire.hpp"
#include "runtime/ipc/protocol.hpp"

namespace apenet::libfabric {

class Endpoint;

inline constexpr std::uint32_t any_source = 0xffffffff;
inline constexpr std::uint32_t any_endpoint = 0xffffffff;

// Scattered memory of the program.
struct Buffer {
  std::array<iovec, segment_limit> pieces;  // only the first `count` mean anything
  std::uint32_t count = 0;
  std::size_t length = 0;
};

// A receive that the program has posted, until its completion. Matched once, except for a multi-receive,
// which stays in the queue and gives parts of its buffer to children until less than the endpoint's minimum
// is left.
struct Receive {
  Hook<Receive> in_queue;   // of the matcher
  Hook<Receive> in_order;   // of all waiting receives of the process, for the report of a deadlock
  std::uint64_t order = 0;  // of posting
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  std::uint32_t source = any_source;
  std::uint32_t source_endpoint = any_endpoint;
  std::uint32_t id = 0;
  std::uint32_t recorded = 0;  // its number in the recording, 0: not there
  bool tagged = false;
  bool reports = false;  // writes a completion, not only errors
  bool multi = false;
  bool retired = false;  // multi: out of the queue, waits for its children
  bool failed = false;
  bool has_data = false;
  Endpoint* endpoint = nullptr;
  void* context = nullptr;
  Buffer buffer;

  // multi
  std::size_t used = 0;
  std::uint32_t children = 0;
  Receive* parent = nullptr;

  // rendezvous under way
  std::uint64_t length = 0;    // of the message
  std::uint64_t expected = 0;  // bytes that fit the buffer
  std::uint64_t received = 0;
  std::uint32_t data = 0;
  std::uint64_t address = 0;  // fi_addr_t of the sender

  void reset() {
    multi = retired = failed = has_data = false;
    endpoint = nullptr;
    parent = nullptr;
    used = children = 0;
    recorded = 0;
    received = 0;
  }
};

// A message as the matcher sees it: the payload lies in an event, in a slot of the sender's arena or in a
// copy.
struct Message {
  MessageHeader header;
  std::uint32_t source = 0;  // rank
  std::uint32_t slot = ipc::no_slot;
  std::uint32_t mailbox_packets = 0;  // in which it came: see ipc::Event
  const std::byte* payload = nullptr;
  std::size_t payload_bytes = 0;

  // Of what the program sent; a ready message announces it.
  [[nodiscard]] std::uint64_t length() const {
    return is_ready(header.kind) ? decode_ready({payload, payload_bytes}).length : payload_bytes;
  }
};

// A message that had to be kept: no receive matched it yet, or an earlier one of its source is still under
// way.
struct StoredMessage {
  Hook<StoredMessage> by_source;
  Hook<StoredMessage> by_arrival;
  Message message;
  std::uint32_t id = 0;
  Endpoint* endpoint = nullptr;
  void* claim = nullptr;              // context of the peek that has claimed it
  std::unique_ptr<std::byte[]> copy;  // when it had to leave its slot
  std::byte small[ipc::inline_bytes];

  void reset() {
    copy.reset();
    claim = nullptr;
    endpoint = nullptr;
  }
};

// What a receive asks for.
struct Wanted {
  std::uint32_t source = any_source;
  std::uint32_t source_endpoint = any_endpoint;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;

  [[nodiscard]] bool accepts(const Message& message) const {
    return ((message.header.tag ^ tag) & ~ignore) == 0 &&
           (source == any_source || source == message.source) &&
           (source_endpoint == any_endpoint || source_endpoint == message.header.source_endpoint);
  }
};

using ReceiveQueue = List<Receive, &Receive::in_queue>;

// The queues of one endpoint for one kind of message (tagged or not). Receives and messages are kept by
// source, those from any source apart, so that a search touches only what could match; the earliest posted
// receive wins, and messages of a source are found in the order in which it sent them.
class Matcher {
 public:
  explicit Matcher(std::uint32_t rank_count) : sources_(rank_count) {}

  void post(Receive* receive);
  void withdraw(Receive* receive);
  // The receive that takes the message, or nullptr. It stays posted.
  [[nodiscard]] Receive* match(const Message& message) const;
  // The posted receive with this context, for fi_cancel.
  [[nodiscard]] Receive* find_context(const void* context) const;
  [[nodiscard]] Receive* any_posted() const;

  void keep(StoredMessage* message);
  void drop(StoredMessage* message);
  // The earliest kept message that fits, or nullptr. It stays kept.
  [[nodiscard]] StoredMessage* find(const Wanted& wanted) const;
  [[nodiscard]] StoredMessage* oldest() const { return arrivals_.front(); }

 private:
  struct Source {
    ReceiveQueue posted;
    List<StoredMessage, &StoredMessage::by_source> kept;
  };
  std::vector<Source> sources_;
  ReceiveQueue from_anybody_;
  List<StoredMessage, &StoredMessage::by_arrival> arrivals_;
  std::uint64_t next_order_ = 0;
};

}  // namespace apenet::libfabric
