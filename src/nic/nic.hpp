// Nic: a card. Descriptors in, packets out; packets in, DMA and completions out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernel/time.hpp"
#include "network/packet.hpp"

namespace apenet {

using ProcessId = std::uint32_t;  // a program's process: the rank, for MPI
using MessageId = std::uint32_t;  // the machine's own number of a message while it is in it

// Where a buffer lies.
enum class Memory : std::uint8_t {
  host,
  gpu,
  none,  // of a put's target: its card takes the packets and drops them (NicCapabilities::drops)
};

// The verbs a process can ask of a card.
enum class Verb : std::uint8_t {
  send,  // message into the target process's receive queue, no address given (eager, VELO, send/recv)
  put,   // write into published memory of the target process; its CPU takes no part
  get,   // read from published memory of the target process; reports `got` alone, whatever is wanted
  // Of a card that needs it (NicCapabilities::needs_credit): the poster will take so many more bytes from the
  // target process on this channel, by send or put. Reports nothing.
  credit,
};

// One entry of a card's descriptor FIFO. The payload itself is not here: bytes are moved by the runtime when
// a completion says so; the card knows how many.
struct Descriptor {
  Verb verb = Verb::send;
  ProcessId source = 0;  // who posts
  ProcessId target = 0;
  std::uint16_t channel = 0;  // virtual channel or hardware queue of the card
  bool from_cpu = false;      // payload written by the CPU with the descriptor (PIO), not read by DMA
  bool want_local = false;    // report Completion::Kind::sent: the source buffer may be used again
  bool want_remote = false;   // report Completion::Kind::remote_done to the source: the data is in the
                              // target's memory (put) and visible there
  bool notify_target = true;  // put: report Completion::Kind::arrived to the target as well
  Memory local_memory = Memory::host;
  Memory remote_memory = Memory::host;
  std::int64_t bytes = 0;  // payload
  // Virtual addresses, for cards that translate them: where the payload is here and, for put and get, where
  // it goes or comes from there.
  std::uint64_t local_address = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t message = 0;  // the poster's number for this message: unique for ever in (source, message)
  // send, where the library cuts it into packets (NicCapabilities::send_packet_bytes): the CPU writes the
  // first with the doorbell, and each further one so much later.
  Time packet_interval = {};
};

struct Completion {
  enum class Kind : std::uint8_t {
    sent,         // to the source: its memory is free again (acknowledged, on a reliable connection)
    arrived,      // to the target: a send or put is complete in its memory
    remote_done,  // to the source: the put is complete in the target's memory
    got,          // to the source of a get: the data is in its memory
  };
  Kind kind = Kind::sent;
  ProcessId process = 0;  // who is told
  ProcessId source = 0;   // (source, message) names the descriptor
  std::uint64_t message = 0;
  Time time;  // when the process can see it
  // arrived: packets that lie in the card's mailbox of the process, until Machine::give_back says that its
  // library has taken them. 0: the card waits for nobody.
  std::uint32_t mailbox_packets = 0;
};

// Where completions go: the runtime, or a scripted process. Called at completion.time.
class CompletionSink {
 public:
  virtual void complete(const Completion& completion) = 0;
  // The payload of (source, message) is written to its destination memory now: a put before `arrived`, a get
  // before `got`. Also called for puts that notify nobody.
  virtual void land(ProcessId source, std::uint64_t message) = 0;
  // A completion for the process will soon come: what does not fit the cache is asked for here.
  virtual void prepare(ProcessId /*process*/) const {}

 protected:
  ~CompletionSink() = default;
};

// What a card can do, for those who choose a protocol over it (and refuse by name what it cannot).
struct NicCapabilities {
  bool put = false;
  bool get = false;
  bool remote_access = true;  // put without the target's consent: what one-sided access needs
  bool needs_credit = false;  // sends and puts to another node wait in the card until the target has given
                              // credit for all their bytes (a message without any: for one) on their channel
  bool gpu_memory = false;    // as source and as target
  bool drops = false;         // puts to Memory::none, which notify nobody
  std::int64_t max_message_bytes = 0;  // largest single descriptor
  std::int64_t max_send_bytes = 0;     // of them, largest of Verb::send
  std::int64_t max_pio_bytes = 0;      // largest from_cpu payload, 0: none
  std::int64_t max_pio_put_bytes = std::numeric_limits<std::int64_t>::max();  // the same of a put, if less
  std::int64_t send_packet_bytes = 0;  // payload of the packets into which a library cuts its sends, and
                                       // takes them; 0: the card does all of it
  bool ordered_verbs = true;           // sends and puts of one (source, target, channel) arrive in the order
                                       // of their posts; else each verb in its own

  [[nodiscard]] constexpr std::int64_t pio_limit_bytes(Verb verb) const {
    return verb == Verb::put ? std::min(max_pio_bytes, max_pio_put_bytes) : max_pio_bytes;
  }
  std::uint16_t channels = 1;
};

// Packets of a send, of those that its library writes and takes one by one.
[[nodiscard]] constexpr std::uint32_t library_packets(std::int64_t send_packet_bytes, std::int64_t bytes) {
  if (send_packet_bytes == 0 || bytes <= send_packet_bytes) return 1;
  return static_cast<std::uint32_t>((bytes + send_packet_bytes - 1) / send_packet_bytes);
}

class Nic {
 public:
  virtual ~Nic() = default;
  [[nodiscard]] virtual NicCapabilities capabilities() const = 0;
  // The doorbell of a message that lies in the table reaches the card now.
  virtual void doorbell(MessageId id) = 0;
  // So does a Verb::credit, of which nothing is kept.
  virtual void credit(const Descriptor& /*descriptor*/) {}
  // The library of `process` has taken the oldest message that lay in its mailbox; what says so has reached
  // the card now.
  virtual void give_back(ProcessId /*process*/) {}
};

}  // namespace apenet
