// The requests of a message library to its card, the card's events, and the cost of each software step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet::message {

inline constexpr std::uint32_t inline_bytes = 192;      // payload inside a Request or an Event
inline constexpr std::uint32_t slot_bytes = 64 * 1024;  // largest payload of one request
inline constexpr std::int64_t most_eager_bytes =
    16 * slot_bytes;                                 // largest eager message, in several requests
inline constexpr std::uint32_t control_bytes = 104;  // largest message that begins a rendezvous
inline constexpr std::int64_t most_bytes = std::int64_t{1} << 36;  // largest descriptor
inline constexpr std::uint32_t no_slot = 0xffffffff;
// From here on, Event::slot numbers places beside the receiver's events, which nobody returns: the payload is
// there until the receiver has taken the event.
inline constexpr std::uint32_t first_event_place = 0x80000000;
[[nodiscard]] constexpr bool is_event_place(std::uint32_t slot) {
  return slot >= first_event_place && slot != no_slot;
}

// The library of a process that posts a request. Its peer's library of the same name takes the event.
enum class Interface : std::uint8_t { libfabric, rdma, apelib, extoll, tnw, gasnet, udp, sockets };
inline constexpr std::size_t interface_count = 8;
inline constexpr std::array<std::string_view, interface_count> interface_names = {
    "libfabric", "rdma", "apelib", "extoll", "tnw", "gasnet", "udp", "sockets"};

// Up to `credit` as apenet::Verb. release: frees a place in the card's mailbox, see keeps_places(). routes:
// reads or replaces the network's routes; local_address and bytes are those of the order, remote_address and
// `immediate` those of the answer (runtime/ipc/route_order.hpp), and an Event `got` follows it. signal: sends
// one to the process of the target; `immediate` is its number, local_address its code, remote_address the
// sender's process and user, and key its value (runtime/ipc/sent_signals.hpp). socket: a system call for a
// socket of the simulated node, which is the inline payload; local_address and bytes are the buffer that it
// names (runtime/ipc/socket_call.hpp). An Event `got` with the answer follows it.
enum class RequestVerb : std::uint8_t {
  send = 0,
  put = 1,
  get = 2,
  credit = 3,
  release = 4,
  routes = 5,
  signal = 6,
  socket = 7
};

// Whether a message of this interface occupies its places in the card's mailbox until its library releases
// it, in the order of arrival; otherwise they are free when the process has taken the event.
constexpr bool keeps_places(Interface interface) {
  return interface == Interface::extoll;
}

enum RequestFlag : std::uint8_t {
  from_cpu = 1,       // payload written to the card by the CPU
  want_local = 2,     // Event sent
  want_remote = 4,    // Event remote_done
  notify_target = 8,  // put: Event arrived at the target; get: Event served there
  by_key = 16,        // put, get: remote_address is one of the region that has the key
  local_gpu = 32,     // the payload, or what a get fetches, is in the memory of the node's GPU
  remote_gpu = 64,    // put: remote_address is in the memory of the target's GPU
  // get by_key: instead of reading, the target's card compares the word of 32 bits at remote_address with the
  // first operand, and adds the second one if it is not greater. Fetches the word then, and 1 or 0.
  lock = 128,
};

// The payload of a lock's request: both are int32_t.
struct LockOperands {
  std::int32_t compare = 0;
  std::int32_t add = 0;
};
// What a lock fetches. Its Event served has it as inline payload.
struct LockResult {
  std::int32_t value = 0;
  std::uint32_t succeeded = 0;
};
inline constexpr std::uint32_t lock_bytes = 8;
static_assert(sizeof(LockOperands) == lock_bytes && sizeof(LockResult) == lock_bytes);

// Why a remote access moved nothing.
enum class AccessFault : std::uint8_t { none, bad_address, unknown_key, out_of_bounds, not_allowed };

// A request of a process to its card.
struct Request {
  std::int64_t time_ps = 0;   // the process's clock when it rang the doorbell
  std::uint64_t message = 0;  // the process's number of the request, returned in its events
  std::uint32_t target = 0;   // rank
  RequestVerb verb = RequestVerb::send;
  std::uint8_t flags = 0;            // RequestFlag
  std::uint16_t endpoint = 0;        // by_key: endpoint of the target; the key belongs to its domain
  std::int64_t bytes = 0;            // size of the transfer: protocol header and payload
  std::uint64_t local_address = 0;   // put: source, get: destination, in the memory of the posting process
  std::uint64_t remote_address = 0;  // put: destination, get: source, in the target's memory
  std::uint64_t immediate = 0;       // passed on in every event of the request
  // Send: payload beyond the inline part, in the arena of the posting process. A put `from_cpu` may have its
  // whole payload in the inline part, and no local_address. A lock has its LockOperands there.
  std::uint32_t slot = no_slot;
  std::uint32_t slot_length = 0;
  std::uint32_t inline_length = 0;
  std::uint8_t rail = 0;  // number of the node's card that carries it
  Interface interface = Interface::libfabric;
  // The card's channel that the library has chosen, from 1; 0: the one of the pair (PeerQueues).
  std::uint16_t channel = 0;
  std::uint64_t key = 0;  // by_key
  // send: 1 if no library of the receiver posts anything because of this message.
  std::uint8_t no_reply = 0;
  std::byte inline_data[inline_bytes];
};

// refused: reports to the source of a put that the target's memory does not permit it, if no remote_done
// will. Only for libraries other than libfabric, whose puts report it otherwise.
enum class EventKind : std::uint8_t { sent, arrived, remote_done, got, put_arrived, refused, served };

// A report of the simulator to a process. The events of a process are ordered by time.
struct Event {
  std::int64_t time_ps = 0;   // visible from this time on
  std::uint64_t message = 0;  // at the origin: number of the Request; arrived: the sender's number
  std::uint32_t source = 0;   // arrived, put_arrived, served: the posting rank; refused: the target
  EventKind kind = EventKind::sent;
  AccessFault fault = AccessFault::none;       // put, get: why no bytes were moved
  std::uint8_t rail = 0;                       // as in the Request
  Interface interface = Interface::libfabric;  // as in the Request
  std::int64_t bytes = 0;
  std::uint64_t immediate = 0;   // as in the Request
  std::uint64_t key = 0;         // as in the Request
  std::uint32_t slot = no_slot;  // slot in the source's arena, which the receiver returns, or an event place
  std::uint32_t slot_length = 0;
  std::uint32_t inline_length = 0;
  std::uint32_t mailbox_packets = 0;  // arrived: Completion::mailbox_packets
  std::byte inline_data[inline_bytes];
};

// CPU time of a software layer over the card, per step. The layer's library charges it to the process.
struct SoftwareCosts {
  Time send;
  Time send_packet;
  Time receive_packet;
  Time receive;
  Time after_receive;
  Time completion;
  Time rendezvous;
  Time publish;
  Time poll;
  Time clock_read;
  Time doorbell;
  Time eager_completion;  // zero: nothing is reported of a copied message
  std::int64_t eager_limit_bytes = 0;
  std::int64_t copy_bytes_per_second = 0;  // rate of the node's memory; 0: a copy takes no time
  Time gpu_copy_latency;
  std::int64_t gpu_copy_bytes_per_second = 0;  // 0: there is no GPU

  // A copy between the memories of the host and of the GPU. Requires a GPU.
  [[nodiscard]] constexpr Time gpu_copy(std::int64_t bytes) const {
    return gpu_copy_latency + DataRate::bytes_per_second(gpu_copy_bytes_per_second).duration(bytes);
  }

  // For a message that the library sends or receives in several packets: the cost of all but the first.
  [[nodiscard]] constexpr Time further_sends(std::uint32_t packets) const {
    return send_packet * (packets > 1 ? packets - 1 : 0);
  }
  [[nodiscard]] constexpr Time further_receives(std::uint32_t packets) const {
    return receive_packet * (packets > 1 ? packets - 1 : 0);
  }
};

// CPU time of the kernel's IP over the card as a network interface, per step, and the sizes of its packets.
// Copies are the node's.
struct DatagramCosts {
  std::int64_t mtu_bytes = 0;     // 0: the node has no such interface
  std::int64_t header_bytes = 0;  // header of each packet, beside what the MTU counts
  Time system_call;
  Time send;
  Time send_packet;
  Time interrupt;
  Time receive_packet;
  Time receive;
};

// What the card can carry, and when its interrupts are answered (NicCapabilities).
struct CardLimits {
  std::uint32_t needs_credit = 0;      // messages wait for RequestVerb::credit
  std::uint32_t reaches_gpus = 0;      // puts and gets read and write the memory of GPUs without a copy
  std::int64_t max_pio_bytes = 0;      // largest send that the CPU writes: machine/message_costs.hpp
  std::int64_t max_message_bytes = 0;  // 0: any
  std::int64_t max_send_bytes = 0;     // 0: any
  std::int64_t send_packet_bytes = 0;
  std::int64_t mailbox_packets = 0;
  Time interrupt;                // until a process that sleeps in the card's driver runs
  std::uint32_t loops_back = 0;  // carries messages between processes of its node, too
};

// Whether a message to a process is a copy in memory, which costs no step of the card. is_same_node: that
// process lives on the same node.
[[nodiscard]] constexpr bool goes_through_memory(const CardLimits& card, bool is_same_node) {
  return is_same_node && card.loops_back == 0;
}

}  // namespace apenet::message
