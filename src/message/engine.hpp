// Engine: the message protocol of one process: eager and rendezvous messages, matching, remote writes and
// reads, and what each step costs the processor.
//
// A plain state machine over a Transport: send(), receive(), write() and read() begin an operation, take()
// processes an event of the card. The cost of each step is charged where it happens. The engine knows no
// library above it: it returns an operation's Owner when the operation ends. Nothing is allocated once the
// pools are warm, and no call is virtual: the Transport is a template argument.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "message/matching.hpp"
#include "message/peers.hpp"
#include "message/pool.hpp"
#include "message/requests.hpp"
#include "message/wire.hpp"

namespace apenet::message {

struct SendCall {
  Buffer buffer;
  std::uint32_t target = 0;
  std::uint16_t target_endpoint = 0;
  bool has_data = false;
  bool tagged = false;
  bool inject = false;    // the buffer may be reused when the call returns
  bool no_reply = false;  // no library of the receiver posts anything because of the message
  std::uint32_t data = 0;
  std::uint64_t tag = 0;
  // Up to this length the message goes at once, and the card reads the buffer itself: no copy, and the buffer
  // is in use until it has left.
  std::uint64_t direct_bytes = 0;
  Owner owner;
};

struct ReceiveCall {
  Buffer buffer;
  Wanted wanted;
  bool tagged = false;
  bool multi = false;
  Landing landing = Landing::copied;
  std::uint32_t number = 0;  // number of the library above
  Owner owner;
};

// A remote write or read.
struct AccessCall {
  Buffer buffer;
  std::span<const Segment> remote;
  std::array<std::uint64_t, segment_limit> keys{};  // one for each segment
  std::uint32_t target = 0;
  std::uint16_t target_endpoint = 0;
  bool has_data = false;
  bool inject = false;
  bool delivered = false;  // ends when the data is in the target's memory, not when it has left ours
  bool notifies = false;   // the target gets an event
  std::uint32_t data = 0;
  Owner owner;
};

enum class TransferKind : std::uint8_t { message, write, read };

// An operation that lasts until the card has reported all its parts.
struct Transfer {
  Hook<Transfer> in_order;
  std::uint32_t id = 0;
  TransferKind kind = TransferKind::message;
  bool tagged = false;
  bool cleared = false;     // message: the receiver has answered
  bool last_waits = false;  // write that notifies its target: its last part does, so it goes alone
  bool has_data = false;
  bool delivered = false;
  bool notifies = false;
  AccessFault fault = AccessFault::none;
  Inbox* inbox = nullptr;  // nullptr: gone
  Owner owner;
  std::uint32_t target = 0;
  std::uint16_t target_endpoint = 0;
  std::uint32_t data = 0;
  std::uint32_t pending = 0;  // parts that the card has not reported
  std::uint64_t tag = 0;
  Buffer buffer;
  Segment last_remote;
  std::uint64_t last_local = 0;
  std::uint8_t last_memory = 0;  // Parts::memory
  std::uint64_t last_key = 0;
  std::unique_ptr<std::byte[]> copy;  // inject

  void reset() {
    copy.reset();
    inbox = nullptr;
    cleared = last_waits = has_data = delivered = notifies = false;
    fault = AccessFault::none;
    last_memory = 0;
    pending = 0;
  }
};

// A message that had to be kept beyond its event.
template <std::size_t room_bytes>
struct StoredMessage : KeptMessage {
  std::uint32_t id = 0;
  Inbox* inbox = nullptr;
  void* claim = nullptr;              // context of the peek that has claimed it
  std::unique_ptr<std::byte[]> copy;  // what did not fit `small`
  std::byte small[room_bytes];

  void reset() {
    copy.reset();
    claim = nullptr;
    inbox = nullptr;
  }
};

// What an engine needs of the process that it serves. All are plain calls.
template <typename P>
concept Transport = requires(P transport, const P constant, Request request, const Event& event,
                             Receive& receive, Transfer& transfer, const Message& message, Inbox* inbox,
                             const Owner& owner) {
  // False: buffers are addresses without memory behind them, and no byte is copied.
  { P::moves_bytes } -> std::convertible_to<bool>;
  // The machine.
  { constant.costs(std::uint8_t{}) } -> std::convertible_to<const SoftwareCosts&>;  // costs of a rail
  { constant.card(std::uint8_t{}) } -> std::convertible_to<const CardLimits&>;
  { constant.rank_count() } -> std::convertible_to<std::uint32_t>;
  {
    constant.is_same_node(std::uint32_t{})
    } -> std::convertible_to<bool>;  // that rank lives on the same node
  // The clock. defer_cost: when the process next polls for events.
  transport.charge(Time{});
  transport.defer_cost(Time{});
  transport.works_for(owner);  // what follows is charged to the CPU of this operation
  // The card. post fills in time and number, and returns the number.
  { transport.post(request) } -> std::convertible_to<std::uint64_t>;
  // Memory. Room for a payload that the request does not hold, as slot and slot_length say; nullptr: none is
  // left. The payload of a message that lies in a slot, and its return.
  { transport.take_slot(request, std::size_t{}) } -> std::convertible_to<std::byte*>;
  { transport.frees_slots(std::uint32_t{}) } -> std::convertible_to<bool>;  // there is room for so many
  { transport.slot_of(event) } -> std::convertible_to<const std::byte*>;
  transport.return_slot(message);
  // Reports to the library above.
  { transport.inbox(std::uint16_t{}) } -> std::convertible_to<Inbox*>;
  transport.matched(receive, message);
  transport.received(receive, true);  // true: and with it ends the multi-receive that it is a part of
  transport.ended(transfer);
  transport.written(inbox, event, PutNotice{});  // others have written; nullptr: the inbox is gone
  transport.was_read(inbox, message);            // others have read
  transport.control_arrived(inbox, message);     // MessageKind::request or answer
};

// A base for transports of libraries that only pass messages: no other rank reads or writes memory by key.
struct MessagesOnly {
  static void matched(const Receive& /*receive*/, const Message& /*message*/) {}
  static void written(Inbox* /*inbox*/, const Event& /*event*/, const PutNotice& /*notice*/) {}
  static void was_read(Inbox* /*inbox*/, const Message& /*message*/) {}
  static void control_arrived(Inbox* /*inbox*/, const Message& /*message*/) {}
};

template <typename P>
class Engine {
 public:
  static constexpr std::size_t room_bytes = P::moves_bytes ? inline_bytes : sizeof(ClearBody);
  using Stored = StoredMessage<room_bytes>;
  // Operations and messages of one or more engines.
  struct Stores {
    Pool<Receive> receives;
    Pool<Transfer> transfers;
    Pool<Stored> stored;
  };

  // Both outlive it. A process has one for each rail that it uses.
  Engine(P& transport, Stores& stores, std::uint8_t rail = 0);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // True: the message has left, its buffer is free. False: Transport::ended will report it.
  [[nodiscard]] bool send(Inbox& from, const SendCall& call);
  void write(Inbox& from, const AccessCall& call);
  void read(Inbox& from, const AccessCall& call);
  void receive(Inbox& inbox, const ReceiveCall& call);
  // Takes a posted receive out of its queue; Transport::received does not follow. It stays valid until
  // forget_receive().
  [[nodiscard]] Receive* cancel(Inbox& inbox, bool tagged, const void* context);
  void forget_receive(Receive& receive);

  // The earliest unmatched tagged message that fits, or nullptr.
  [[nodiscard]] Stored* find(Inbox& inbox, const Wanted& wanted);
  // Nobody will receive it; only the owner of this context may; takes what that claimed, nullptr: nothing.
  void discard_kept(Stored& kept);
  void claim(Stored& kept, void* context);
  [[nodiscard]] Stored* claimed(const Inbox& inbox, const void* context);
  void discard_claimed(Stored& kept);
  void receive_claimed(Inbox& inbox, const ReceiveCall& call, Stored& kept);

  // From now on, messages for the inbox match the receives of the other. The other outlives it.
  void share_queues(Inbox& inbox, Inbox& other);

  // The inbox goes: its receives are forgotten, its messages dropped, what is under way ends unreported.
  void forget(Inbox& inbox);

  // Processes an event. Throws MalformedMessage if its payload is no message.
  void take(const Event& event);
  // The process is about to wait for events: places in the card's rings are free again.
  void give_rings_back();

  // Sends a message of the library above; the sequence number is filled in.
  void post_control(std::uint32_t target, MessageHeader header, std::span<const std::byte> body);
  // Call for each message that the library above takes.
  void charge_receive(const Message& message);

  [[nodiscard]] std::uint32_t expected_sequence(std::uint32_t source) {
    return peers_[peers_.number_of(source)].next_in;
  }
  // Receives that wait, and transfers under way; the oldest of each.
  [[nodiscard]] std::uint32_t waiting() const { return waiting_; }
  [[nodiscard]] const Receive* oldest_receive() const { return receives_.front(); }
  // The oldest of these; nullptr if there is none.
  template <typename Predicate>
  [[nodiscard]] const Receive* find_waiting(Predicate predicate) const {
    const Receive* receive = receives_.front();
    while (receive != nullptr && !predicate(*receive)) receive = receives_.next(receive);
    return receive;
  }
  template <typename Predicate>
  [[nodiscard]] std::uint32_t count_waiting(Predicate predicate) const {
    std::uint32_t count = 0;
    receives_.for_each([&](const Receive* receive) { count += predicate(*receive) ? 1 : 0; });
    return count;
  }
  // Messages that arrived before a predecessor: one event can bring several of them to their receives.
  [[nodiscard]] std::uint32_t held() const { return held_; }
  [[nodiscard]] std::uint32_t unfinished() const { return unfinished_; }
  [[nodiscard]] const Transfer* oldest_transfer() const { return transfers_.front(); }
  // Whether a send that is over for the caller still needs this process: no receiver has answered it.
  // Mostly the oldest transfer decides, however many there are.
  [[nodiscard]] bool has_injected(const Inbox& from) const {
    const Transfer* transfer = transfers_.front();
    while (transfer != nullptr && (transfer->inbox != &from || transfer->copy == nullptr))
      transfer = transfers_.next(transfer);
    return transfer != nullptr;
  }
  // Remote writes and reads: unlike messages they end without the peer's help.
  [[nodiscard]] std::uint32_t accesses_under_way() const { return accesses_; }

 private:
  // What a part is beside where it goes.
  struct PartOptions {
    std::uint8_t flags = 0;  // RequestFlag
    std::uint64_t key = 0;   // with by_key
    std::uint64_t immediate = 0;
  };
  // Sending.
  bool send_eager(Inbox& from, const SendCall& call);
  bool send_direct(Inbox& from, const SendCall& call);
  void post_eager(MessageHeader header, const SendCall& call, const Buffer& part);
  [[nodiscard]] Request eager_request(MessageHeader header, std::uint32_t target, const Buffer& buffer);
  void start_rendezvous(Inbox& from, const SendCall& call);
  Transfer& begin(Inbox& from, TransferKind kind, const Buffer& buffer, bool inject, const Owner& owner);
  Transfer& begin_access(Inbox& from, TransferKind kind, const AccessCall& call);
  void post_part(Transfer& transfer, RequestVerb verb, std::uint64_t local, const Segment& remote,
                 const PartOptions& options);
  void post_send(Request& request);
  void post_last(Transfer& transfer);
  void cleared(const Message& message);
  void reported(const Event& event);
  void finish(Transfer& transfer);
  void charge_copy(std::uint64_t bytes);
  [[nodiscard]] bool goes_through_memory(std::uint32_t peer) const;
  void charge_doorbell(std::uint32_t target);
  [[nodiscard]] bool lands_directly(const Receive& receive, const Message& message) const;
  void charge_gpu_copy(std::uint64_t bytes);
  void charge_staging(const Buffer& buffer, std::uint32_t peer);
  [[nodiscard]] bool card_reaches_gpus(std::uint32_t peer) const;
  // Receiving.
  Receive& take_receive(Inbox& inbox, const ReceiveCall& call);
  void withdraw(Receive& receive);
  void arrived(Inbox& inbox, const Message& message);
  Receive& carve(Receive& parent, const Message& message);
  void consume(Receive& receive, Inbox& reached, const Message& message);
  void clear(Receive& receive, const Message& message);
  void give_credit(std::uint32_t source, std::int64_t bytes);
  void post_credit(std::uint32_t source, std::int64_t bytes);
  void put_arrived(const Event& event);
  void finish(Receive& receive);
  void discard(const Message& message);
  // Messages in their order.
  [[nodiscard]] Message unpack(const Event& event);
  void find_payload(const Event& event, Message& message);
  void take_in_turn(const Message& message);
  void assemble(const Message& message);
  void deliver(const Message& message);
  Stored& store(const Message& message);
  Message unstore(Stored& stored);
  void release(Stored& stored) { stores_.stored.give_back(&stored); }
  static Stored* stored_of(KeptMessage* kept) { return static_cast<Stored*>(kept); }

  P& transport_;
  Stores& stores_;
  std::uint8_t rail_;
  std::int64_t eager_limit_bytes_;
  std::uint64_t piece_limit_bytes_;  // largest part of an eager message in one request
  std::uint64_t part_limit_bytes_;
  std::uint32_t unfinished_ = 0;  // length of transfers_
  std::uint32_t accesses_ = 0;    // those that are remote writes and reads
  std::uint32_t waiting_ = 0;     // length of receives_
  std::uint32_t held_ = 0;        // sum over all peers
  Peers peers_;
  List<Transfer, &Transfer::in_order> transfers_;
  List<Receive, &Receive::in_order> receives_;
  List<KeptMessage, &KeptMessage::by_arrival> claimed_;
  MessageMap parts_;                                                      // from a request to its transfer
  std::vector<std::pair<std::uint32_t, std::int64_t>> taken_from_rings_;  // source, bytes
};

}  // namespace apenet::message
