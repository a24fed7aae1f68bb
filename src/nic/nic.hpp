// Nic: a card. It turns descriptors into packets, and packets into DMA and completions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernel/time.hpp"
#include "network/packet.hpp"

namespace apenet {

using ProcessId = std::uint32_t;  // a process of the program; for MPI, the rank
using MessageId = std::uint32_t;  // the machine's number of a message, while the message is in progress

// The memory that holds a buffer.
enum class Memory : std::uint8_t {
  host,
  gpu,
  none,  // only as target of a put: the target's card drops the packets (NicCapabilities::drops)
};

// The operations that a process can request from a card.
enum class Verb : std::uint8_t {
  send,  // a message into the target process's receive queue, without an address (eager, VELO, send/recv)
  put,   // a write into published memory of the target process, without its CPU
  get,   // a read from published memory of the target process; reports `got`
  // Only for cards with NicCapabilities::needs_credit: the poster will accept this many more bytes from the
  // target process on this channel, by send or put. Causes no completion.
  credit,
};

// An entry of a card's descriptor FIFO. It does not contain the payload: the runtime moves the bytes when a
// completion is reported; the card only knows their number.
struct Descriptor {
  Verb verb = Verb::send;
  ProcessId source = 0;  // the posting process
  ProcessId target = 0;
  std::uint16_t channel = 0;  // virtual channel or hardware queue of the card
  // The CPU writes the payload with the descriptor (PIO); false: the card reads it by DMA.
  bool from_cpu = false;
  bool want_local = false;  // report CompletionKind::sent: the source buffer may be reused
  // Report CompletionKind::remote_done to the source when the data of a put is visible in the target's
  // memory.
  bool want_remote = false;
  bool notify_target = true;  // put: also report CompletionKind::arrived to the target
  Memory local_memory = Memory::host;
  Memory remote_memory = Memory::host;
  std::uint8_t rail = 0;  // number of the node's card that carries it
  // get, if the card can (NicCapabilities::get_notifications): also report `sent` when the request has left,
  // and `served` when the target's card has read its memory.
  bool notify_requester = false;
  bool notify_responder = false;
  bool is_lock = false;    // get, NicCapabilities::locks: executes CompletionSink::execute() at the target
  std::int64_t bytes = 0;  // payload
  // Virtual addresses, for cards that translate them. local_address: the payload at the poster;
  // remote_address: its destination (put) or source (get) at the target.
  std::uint64_t local_address = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t message = 0;  // the poster's number of the message; (source, message) is never reused
  // send, if the library splits it into packets (NicCapabilities::send_packet_bytes): the CPU writes the
  // first packet with the doorbell, and each further one after this interval.
  Time packet_interval = {};
};

// A message on the two ways of a card of which the library writes short messages itself: packet by packet to
// the card, or read by the card from memory. What both have in common may be left out.
struct SendTimes {
  Time by_cpu;
  Time by_card;
};

enum class CompletionKind : std::uint8_t {
  sent,         // to the source: its buffer is free (on a reliable connection: acknowledged)
  arrived,      // to the target: a send or put is complete in its memory
  remote_done,  // to the source: the put is complete in the target's memory
  got,          // to the source of a get: the data is in its memory
  served,       // to the target of a get: its memory has been read
};

struct Completion {
  CompletionKind kind = CompletionKind::sent;
  ProcessId process = 0;  // the process notified
  ProcessId source = 0;   // (source, message) identifies the descriptor
  std::uint64_t message = 0;
  Time time;  // when the process can see the completion
  // arrived: number of packets that occupy the process's mailbox on the card until the library has taken them
  // (Machine::give_back). 0: the message occupies no mailbox.
  std::uint32_t mailbox_packets = 0;
};

// Receives completions: the scheduler, or what stands in for processes in the simulator. Called at
// completion.time.
class CompletionSink {
 public:
  virtual void complete(const Completion& completion) = 0;
  // Writes the payload of (source, message) to its destination memory: for a put before `arrived`, for a get
  // before `got`. Also called for puts without notification.
  virtual void deliver_payload(ProcessId source, std::uint64_t message) = 0;
  // Executes the read-modify-write of a lock in the target's memory. Before `served` and `got`.
  virtual void execute(ProcessId /*source*/, std::uint64_t /*message*/) {}
  // A completion for the process will come soon: prefetch what does not fit the cache.
  virtual void prepare(ProcessId /*process*/) const {}

 protected:
  ~CompletionSink() = default;
};

// What a card can do. Protocols choose by it, and requests for missing features are refused by name.
struct NicCapabilities {
  bool put = false;
  bool get = false;
  bool get_notifications = false;  // Descriptor::notify_requester, notify_responder
  bool locks = false;              // Descriptor::is_lock
  bool remote_access = true;       // put without the target's participation, as one-sided access requires
  // Sends and puts to another node wait in the card until the target has given credit on their channel for
  // all their bytes (for one byte if the message is empty).
  bool needs_credit = false;
  bool gpu_memory = false;  // as source and as target
  bool translates_addresses =
      false;           // translates those of puts and gets, so that it matters where buffers lie
  bool drops = false;  // supports puts to Memory::none, which notify no process
  std::int64_t max_message_bytes = 0;  // largest payload of a descriptor
  std::int64_t max_send_bytes = 0;     // largest payload of a Verb::send
  std::int64_t max_pio_bytes = 0;      // largest from_cpu payload; 0: none
  // The same limit for a put, if lower.
  std::int64_t max_pio_put_bytes = std::numeric_limits<std::int64_t>::max();
  // Payload of the packets into which the library splits its sends, and which it receives one by one; 0: the
  // card does this.
  std::int64_t send_packet_bytes = 0;
  std::int64_t mailbox_packets = 0;  // that a process's mailbox has room for; 0: there is none
  // Size of the memory through which sends to a process walk, one after another; 0: none that a card
  // translates.
  std::int64_t receive_ring_bytes = 0;
  // Sends and puts of one (source, target, channel) arrive in the order of their posts; otherwise only those
  // of the same verb and the same from_cpu do.
  bool ordered_verbs = true;
  Time interrupt{};  // until the driver has woken a process that sleeps for an event

  [[nodiscard]] constexpr std::int64_t pio_limit_bytes(Verb verb) const {
    return verb == Verb::put ? std::min(max_pio_bytes, max_pio_put_bytes) : max_pio_bytes;
  }
  std::uint16_t channels = 1;
  // needs_credit: the channel, beside these, of libraries that keep receive rings
  // (CardSet::fill_receive_rings).
  std::uint16_t ring_channel = 0;
  // Channels that wait each on its own, so that a library gives different peers different ones
  // (machine/peer_queues.hpp). 1: the library uses channel 0 for all messages.
  std::uint16_t peer_queues = 1;
};

// The number of packets that the library writes and reads one by one for a send.
[[nodiscard]] constexpr std::uint32_t library_packets(std::int64_t send_packet_bytes, std::int64_t bytes) {
  if (send_packet_bytes == 0 || bytes <= send_packet_bytes) return 1;
  return static_cast<std::uint32_t>((bytes + send_packet_bytes - 1) / send_packet_bytes);
}

class Nic {
 public:
  virtual ~Nic() = default;
  // Call when the doorbell of a message in the table reaches the card.
  virtual void doorbell(MessageId id) = 0;
  // As doorbell(), for a Verb::credit, which is not stored in the table.
  virtual void credit(const Descriptor& /*descriptor*/) {}
  // Call when the card learns that the library of `process` has taken the oldest message from its mailbox.
  virtual void give_back(ProcessId /*process*/) {}
};

}  // namespace apenet
