// ToyNetwork: ranks in one address space, each with a message engine over a ToyTransport. Nothing happens
// until the test says so: what has been posted is under way until deliver() takes it to its target.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "message/engine_events.hpp"

namespace apenet::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_from(unsigned first, std::size_t length) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

inline message::Buffer buffer_of(const Bytes& bytes) {
  return message::one_piece(message::address_of(bytes.data()), bytes.size());
}

// What an operation's context points to: only its address counts.
using Contexts = std::array<char, 8>;

class ToyNetwork;

// What the library above an engine was reported.
struct Report {
  enum class What : std::uint8_t { received, ended, written, was_read, control };
  What what = What::received;
  void* context = nullptr;  // context of the operation
  std::uint32_t source = 0;
  std::uint64_t tag = 0;
  std::uint64_t length = 0;    // received: of the message
  std::uint64_t expected = 0;  // received: what fitted the buffer
  std::uint32_t data = 0;
  bool ends_multi = false;
  bool failed = false;
};

class ToyTransport {
 public:
  static constexpr bool moves_bytes = true;

  ToyTransport(ToyNetwork& network, std::uint32_t rank) : network_(network), rank_(rank) {}

  [[nodiscard]] const message::SoftwareCosts& costs(std::uint8_t rail) const;
  [[nodiscard]] const message::CardLimits& card(std::uint8_t rail) const;
  [[nodiscard]] std::uint32_t rank_count() const;
  [[nodiscard]] bool is_same_node(std::uint32_t /*rank*/) const { return false; }
  void charge(Time time) { charged += time; }
  void defer_cost(Time time) { charged_later += time; }
  void works_for(const message::Owner& owner) { works_for_context = owner.context; }
  std::uint64_t post(message::Request& request);
  [[nodiscard]] std::byte* take_slot(message::Request& request, std::size_t bytes);
  [[nodiscard]] bool frees_slots(std::uint32_t count) const { return slot_limit - slots_in_use >= count; }
  [[nodiscard]] const std::byte* slot_of(const message::Event& event);
  void return_slot(const message::Message& message);
  [[nodiscard]] message::Inbox* inbox(std::uint16_t number) { return number == 0 ? own_inbox : nullptr; }
  void matched(const message::Receive& /*receive*/, const message::Message& /*message*/) { ++matches; }
  void received(const message::Receive& receive, bool ends_multi) {
    if (receive.inbox == nullptr) return;
    reported.push_back({Report::What::received, receive.owner.context, receive.source, receive.tag,
                        receive.length, receive.expected, receive.data, ends_multi, receive.failed});
  }
  void ended(const message::Transfer& transfer) {
    if (transfer.inbox == nullptr) return;
    reported.push_back({.what = Report::What::ended,
                        .context = transfer.owner.context,
                        .failed = transfer.fault != message::AccessFault::none});
  }
  void written(message::Inbox* /*inbox*/, const message::Event& event, message::PutNotice notice) {
    reported.push_back({.what = Report::What::written,
                        .source = event.source,
                        .length = static_cast<std::uint64_t>(event.bytes),
                        .data = notice.value});
  }
  void was_read(message::Inbox* /*inbox*/, const message::Message& message) {
    reported.push_back({.what = Report::What::was_read, .source = message.source, .tag = message.header.tag});
  }
  void control_arrived(message::Inbox* /*inbox*/, const message::Message& message) {
    reported.push_back({.what = Report::What::control,
                        .source = message.source,
                        .tag = message.header.tag,
                        .length = message.payload_bytes});
  }

  message::Inbox* own_inbox = nullptr;
  Time charged;
  Time charged_later;
  void* works_for_context = nullptr;
  std::uint32_t matches = 0;
  std::uint32_t slots_in_use = 0;
  std::uint32_t slot_limit = 1000;
  std::uint64_t next_number = 1;
  std::vector<Report> reported;
  std::map<std::uint64_t, message::Segment> regions;  // by key: memory that others may access

 private:
  ToyNetwork& network_;
  std::uint32_t rank_;
  std::deque<std::unique_ptr<std::byte[]>> slots_;
  std::vector<std::uint32_t> free_slots_;
};

static_assert(message::Transport<ToyTransport>);
using ToyEngine = message::Engine<ToyTransport>;

class ToyNetwork {
 public:
  struct Rank {
    Rank(ToyNetwork& network, std::uint32_t number) : transport(network, number), engine(transport, stores) {
      transport.own_inbox = &inbox;
    }
    ToyTransport transport;
    ToyEngine::Stores stores;
    message::Inbox inbox{0};
    ToyEngine engine;
  };

  explicit ToyNetwork(std::uint32_t ranks, const message::SoftwareCosts& costs = small_eager_limit(),
                      const message::CardLimits& card = {})
      : costs_(costs), card_(card), rank_count_(ranks) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) ranks_.emplace_back(*this, rank);
  }

  // A payload of up to 168 bytes lies in the event, one of up to 256 in a slot; larger ones are a rendezvous.
  [[nodiscard]] static message::SoftwareCosts small_eager_limit() {
    message::SoftwareCosts costs;
    costs.eager_limit_bytes = 256;
    return costs;
  }

  [[nodiscard]] Rank& operator[](std::uint32_t rank) { return ranks_[rank]; }
  [[nodiscard]] std::uint32_t rank_count() const { return rank_count_; }
  [[nodiscard]] const message::SoftwareCosts& costs() const { return costs_; }
  [[nodiscard]] const message::CardLimits& card() const { return card_; }

  // Requests and reports under way, in the order of their posts.
  [[nodiscard]] std::size_t under_way() const { return flights_.size(); }
  void deliver(std::size_t which = 0) {
    const std::function<void()> arrive = std::move(flights_[which]);
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(which));
    arrive();
  }
  void run() {
    while (!flights_.empty()) deliver();
  }
  void post(std::uint32_t source, const message::Request& request);

  // Called for sends, in the order of their posts; and when one arrives.
  std::function<void(std::uint32_t source, const message::Request& request)> on_send;
  std::function<void(std::uint32_t source, const message::Request& request)> on_arrival;
  std::function<void(std::uint32_t source, const message::Request& request)> on_put;  // and of gets
  std::int64_t credit_bytes = 0;  // given by anyone to anyone

 private:
  void report(std::uint32_t rank, message::Event event) {
    flights_.emplace_back([this, rank, event] { ranks_[rank].engine.take(event); });
  }
  [[nodiscard]] message::AccessFault fault_of(const message::Request& request);
  void move(std::uint32_t source, const message::Request& request);

  message::SoftwareCosts costs_;
  message::CardLimits card_;
  std::uint32_t rank_count_;
  std::deque<Rank> ranks_;
  std::deque<std::function<void()>> flights_;
};

inline const message::SoftwareCosts& ToyTransport::costs(std::uint8_t /*rail*/) const {
  return network_.costs();
}
inline const message::CardLimits& ToyTransport::card(std::uint8_t /*rail*/) const {
  return network_.card();
}
inline std::uint32_t ToyTransport::rank_count() const {
  return network_.rank_count();
}

inline std::uint64_t ToyTransport::post(message::Request& request) {
  request.message = next_number++;
  network_.post(rank_, request);
  return request.message;
}

inline std::byte* ToyTransport::take_slot(message::Request& request, std::size_t bytes) {
  if (slots_in_use == slot_limit) return nullptr;
  ++slots_in_use;
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.push_back(std::make_unique<std::byte[]>(message::slot_bytes));
  }
  request.slot = free_slots_.back();
  request.slot_length = static_cast<std::uint32_t>(bytes);
  free_slots_.pop_back();
  return slots_[request.slot].get();
}

inline const std::byte* ToyTransport::slot_of(const message::Event& event) {
  return network_[event.source].transport.slots_[event.slot].get();
}

inline void ToyTransport::return_slot(const message::Message& message) {
  if (message.slot == message::no_slot) return;
  ToyTransport& owner = network_[message.source].transport;
  --owner.slots_in_use;
  owner.free_slots_.push_back(message.slot);
}

inline void ToyNetwork::post(std::uint32_t source, const message::Request& request) {
  if (request.verb == message::RequestVerb::credit) {
    credit_bytes += request.bytes;
    return;
  }
  if (request.verb == message::RequestVerb::send && on_send) on_send(source, request);
  if (request.verb != message::RequestVerb::send && on_put) on_put(source, request);
  flights_.emplace_back([this, source, request] {
    if (request.verb != message::RequestVerb::send) {
      move(source, request);
      return;
    }
    if (on_arrival) on_arrival(source, request);
    message::Event event;
    event.kind = message::EventKind::arrived;
    event.message = request.message;
    event.source = source;
    event.bytes = request.bytes;
    event.slot = request.slot;
    event.slot_length = request.slot_length;
    event.inline_length = request.inline_length;
    std::memcpy(event.inline_data, request.inline_data, request.inline_length);
    ranks_[request.target].engine.take(event);
    if ((request.flags & message::want_local) == 0) return;
    message::Event sent;
    sent.kind = message::EventKind::sent;
    sent.message = request.message;
    sent.immediate = request.immediate;
    report(source, sent);
  });
}

inline message::AccessFault ToyNetwork::fault_of(const message::Request& request) {
  if ((request.flags & message::by_key) == 0) return message::AccessFault::none;
  const auto& regions = ranks_[request.target].transport.regions;
  const auto found = regions.find(request.key);
  if (found == regions.end()) return message::AccessFault::unknown_key;
  const message::Segment& region = found->second;
  const bool is_inside =
      request.remote_address >= region.address &&
      request.remote_address + static_cast<std::uint64_t>(request.bytes) <= region.address + region.length;
  return is_inside ? message::AccessFault::none : message::AccessFault::out_of_bounds;
}

// A put or a get: moves the bytes, then reports to those who asked for it.
inline void ToyNetwork::move(std::uint32_t source, const message::Request& request) {
  const bool is_put = request.verb == message::RequestVerb::put;
  message::Event event;
  event.message = request.message;
  event.source = source;
  event.bytes = request.bytes;
  event.immediate = request.immediate;
  event.key = request.key;
  event.fault = fault_of(request);
  if (event.fault == message::AccessFault::none && request.bytes > 0) {
    const std::uint64_t to = is_put ? request.remote_address : request.local_address;
    const std::uint64_t from = is_put ? request.local_address : request.remote_address;
    std::memcpy(message::memory_at(to), message::memory_at(from), static_cast<std::size_t>(request.bytes));
  }
  const auto reports = [&](std::uint32_t rank, message::EventKind kind) {
    event.kind = kind;
    report(rank, event);
  };
  if (!is_put) reports(source, message::EventKind::got);
  if ((request.flags & message::want_local) != 0) reports(source, message::EventKind::sent);
  if ((request.flags & message::want_remote) != 0) reports(source, message::EventKind::remote_done);
  if ((request.flags & message::notify_target) != 0) reports(request.target, message::EventKind::put_arrived);
}

}  // namespace apenet::test
