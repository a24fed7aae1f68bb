// Matching: posted receives against arrived messages, in the order that MPI and libfabric ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "message/buffer.hpp"
#include "message/pool.hpp"
#include "message/requests.hpp"
#include "message/wire.hpp"

namespace apenet::message {

inline constexpr std::uint32_t any_source = 0xffffffff;
inline constexpr std::uint32_t any_endpoint = 0xffffffff;

// Data that the library above attaches to an operation and gets back with it. The engine does not read it.
struct Owner {
  void* context = nullptr;
  std::uint64_t address = 0;  // the peer's address, as the library calls it
  std::uint32_t number = 0;
  std::uint16_t cpu = 0;
  bool reports = false;
};

// Where the messages for one address of a process arrive.
class Inbox;

// How the payload of an eager message comes into the buffer of a receive. The payload of a rendezvous always
// goes there.
enum class Landing : std::uint8_t {
  copied,        // it goes into the library's memory, and the engine copies it
  direct,        // the buffer is published to the card: copied only if the message came before the receive
  copied_above,  // it goes into memory of the library above, which copies it and charges for that
};

// A receive that has been posted, until its completion. Matched once, except for a multi-receive, which stays
// in the queue and gives parts of its buffer to children until less than the inbox's minimum is left.
struct Receive {
  Hook<Receive> in_queue;   // for the matcher
  Hook<Receive> in_order;   // for all waiting receives of the process, for the report of a deadlock
  std::uint64_t order = 0;  // order of posting
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  std::uint32_t source = any_source;
  std::uint32_t source_endpoint = any_endpoint;
  std::uint32_t id = 0;
  std::uint32_t peer = 0;    // number of a named source: see Matcher
  std::uint32_t number = 0;  // ReceiveCall::number
  std::uint32_t data = 0;
  bool tagged = false;
  bool multi = false;
  bool retired = false;  // multi: out of the queue, waits for its children
  bool failed = false;
  bool has_data = false;
  Landing landing = Landing::copied;
  Inbox* inbox = nullptr;  // where it is posted; from the match on, the one that the message is for
  Owner owner;
  Buffer buffer;

  // multi
  std::uint64_t used = 0;
  std::uint32_t children = 0;
  Receive* parent = nullptr;

  // matched: source, tag and data are the message's
  std::uint64_t length = 0;    // length of the message
  std::uint64_t expected = 0;  // bytes that fit the buffer
  std::uint64_t received = 0;  // by rendezvous

  void reset() {
    multi = retired = failed = has_data = false;
    landing = Landing::copied;
    inbox = nullptr;
    parent = nullptr;
    used = children = 0;
    received = 0;
  }
};

// A message as the matcher sees it: the payload lies in an event, in a slot of the sender's arena or in a
// copy.
struct Message {
  MessageHeader header;
  std::uint32_t source = 0;  // rank
  std::uint32_t peer = 0;    // the receiver's number for it: see Matcher
  std::uint32_t slot = no_slot;
  std::uint32_t mailbox_packets = 0;  // in which it came: see Event
  std::uint8_t rail = 0;              // on which it came
  bool in_pieces = false;             // eager: the engine has put it together
  const std::byte* payload = nullptr;
  std::size_t payload_bytes = 0;

  // Length of what the program sent; a ready message announces it.
  [[nodiscard]] std::uint64_t length() const {
    return is_ready(header.kind) ? decode_ready({payload, payload_bytes}).length : payload_bytes;
  }
};

// A message that no receive has matched yet.
struct KeptMessage {
  Hook<KeptMessage> by_key;
  Hook<KeptMessage> by_source;
  Hook<KeptMessage> by_arrival;
  Message message;
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

// Elements in lists by peer and tag. Each list keeps its order. Never walked through as a whole.
template <typename T, Hook<T> T::*hook>
class KeyTable {
 public:
  using Bucket = List<T, hook>;

  [[nodiscard]] bool empty() const { return count_ == 0; }
  // The bucket of this key, and of others. Requires that the table is not empty.
  [[nodiscard]] const Bucket& bucket(std::uint32_t peer, std::uint64_t tag) const {
    return buckets_[place(peer, tag)];
  }
  void insert(T* element, std::uint32_t peer, std::uint64_t tag) {
    if (count_++ == buckets_.size()) grow();
    buckets_[place(peer, tag)].push_back(element);
  }
  void remove(T* element, std::uint32_t peer, std::uint64_t tag) {
    --count_;
    buckets_[place(peer, tag)].remove(element);
  }
  // The order has no meaning.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Bucket& bucket : buckets_) bucket.for_each(visit);
  }

 private:
  [[nodiscard]] std::size_t place(std::uint32_t peer, std::uint64_t tag) const {
    std::uint64_t hash = (tag + peer * std::uint64_t{0xd6e8feb86659fd93U}) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32;
    return hash & (buckets_.size() - 1);
  }
  void grow();

  std::vector<Bucket> buckets_;  // size: a power of two, or none
  std::size_t count_ = 0;
};

// The queues of one inbox for one kind of message (tagged or not). The earliest posted receive wins, and
// messages of a source are found in the order in which it sent them.
//
// Receives that name source and whole tag, and the messages for them, are found by these however many there
// are; those with ignored bits are kept by source, those from any source apart. A peer is the process's own
// number for a rank with which it communicates. These numbers are dense, because a process communicates with
// few of many ranks.
class Matcher {
 public:
  void post(Receive* receive);
  void withdraw(Receive* receive);
  // The receive that takes the message, or nullptr. It stays posted.
  [[nodiscard]] Receive* match(const Message& message) const;
  // The earliest posted receive for which is_wanted(receive), or nullptr. Examines all of them.
  template <typename IsWanted>
  [[nodiscard]] Receive* find_posted(IsWanted is_wanted) const;

  void keep(KeptMessage* message);
  void drop(KeptMessage* message);
  // The earliest kept message that fits, or nullptr. It stays kept. `peer`: of a source that is named.
  [[nodiscard]] KeptMessage* find(const Wanted& wanted, std::uint32_t peer) const;
  [[nodiscard]] KeptMessage* oldest() const { return arrivals_.front(); }
  // In order of arrival. `visit` does not change them.
  template <typename Visit>
  void for_each_kept(Visit visit) const {
    arrivals_.for_each([&visit](const KeptMessage* kept) { visit(*kept); });
  }
  [[nodiscard]] KeptMessage* oldest_for(std::uint16_t endpoint) const {
    KeptMessage* kept = arrivals_.front();
    while (kept != nullptr && kept->message.header.target_endpoint != endpoint) kept = arrivals_.next(kept);
    return kept;
  }

 private:
  using ReceiveQueue = List<Receive, &Receive::in_queue>;
  struct Source {
    ReceiveQueue posted;
    List<KeptMessage, &KeptMessage::by_source> kept;
  };
  Source& source(std::uint32_t peer) {
    if (peer >= sources_.size()) sources_.resize(peer + 1);
    return sources_[peer];
  }

  std::vector<Source> sources_;  // by peer
  ReceiveQueue from_anybody_;
  KeyTable<Receive, &Receive::in_queue> posted_;
  KeyTable<KeptMessage, &KeptMessage::by_key> kept_;
  List<KeptMessage, &KeptMessage::by_arrival> arrivals_;
  std::uint64_t next_order_ = 0;
};

template <typename IsWanted>
Receive* Matcher::find_posted(IsWanted is_wanted) const {
  Receive* found = nullptr;
  const auto compare = [&](Receive* receive) {
    if (is_wanted(*receive) && (found == nullptr || receive->order < found->order)) found = receive;
  };
  from_anybody_.for_each(compare);
  for (const Source& source : sources_) source.posted.for_each(compare);
  posted_.for_each(compare);
  return found;
}

class Inbox {
 public:
  explicit Inbox(std::uint16_t number) : number_(number) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  [[nodiscard]] std::uint16_t number() const { return number_; }
  [[nodiscard]] Matcher& matcher(bool with_tag) { return with_tag ? tagged_ : plain_; }
  [[nodiscard]] std::uint64_t min_multi_receive() const { return min_multi_receive_; }
  void set_min_multi_receive(std::uint64_t bytes) { min_multi_receive_ = bytes; }
  // The inbox whose receives its messages match: itself, unless it shares those of another.
  [[nodiscard]] Inbox& queues() { return *queues_; }
  void share_queues(Inbox& other) { queues_ = &other; }

 private:
  std::uint16_t number_;
  Inbox* queues_ = this;
  std::uint64_t min_multi_receive_ = 0;
  Matcher tagged_;
  Matcher plain_;
};

}  // namespace apenet::message
