// IpNetwork: TCP/IP of all nodes of a job. It executes the processes' socket calls, and carries the packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ip/capture.hpp"
#include "ip/loss.hpp"
#include "ip/sockets.hpp"
#include "kernel/simulation.hpp"
#include "machine/machine.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/ipc/socket_call.hpp"
#include "runtime/scheduler/process_memory.hpp"

namespace apenet {

// Each node has one kernel, a process of the machine behind those of the ranks, and one stack, which its
// ranks share. A call reaches the stack one lookahead after its request, and its answer the rank at the time
// at which the call is done. The kernel works on one packet after another: a packet that arrives waits for
// the interrupt, or for the work before it, and a packet that is sent for its own work. Packets are sends of
// the card. What a node sends to itself passes no card.
class IpNetwork final : private EventHandler {
 public:
  struct Answer {
    std::uint32_t rank = 0;
    ipc::Request request;
    ipc::SocketAnswer answer;
  };
  // What IpNetwork needs of the run. epoch(): when virtual time began. answered(): the answer is due now.
  // sent(): a packet is posted, in bytes.
  struct Run {
    Simulation& simulation;
    Machine& machine;
    ProcessMemory& memory;
    std::function<Time()> epoch;
    std::function<void(const Answer&)> answered;
    std::function<void(std::int64_t bytes)> sent;
  };

  // The node of a rank in the machine, and its number in the run's partition, from which its address follows.
  struct Place {
    NodeId node = 0;
    std::uint32_t number = 0;
  };
  // A file for the packets. As a rule each packet is in it once, when its kernel gives it to the card; or
  // those of one node are, when its kernel gives them to the card and when it gets them, as tcpdump there
  // would see them.
  struct Capture {
    std::string path;        // empty: none
    std::int64_t node = -1;  // its number in the run's partition; -1: all
  };
  struct Setup {
    std::vector<Place> places;
    // The kernels are the machine's processes from here on, one for each node that has a rank, in the order
    // of the machine's nodes.
    ProcessId first_kernel = 0;
    Capture capture;
  };
  IpNetwork(Run run, Setup setup);

  // The address of a node.
  [[nodiscard]] static std::uint32_t address_of(std::uint32_t node) { return first_address + node; }

  // Whether the request is well formed; otherwise it must not be posted.
  [[nodiscard]] static bool is_valid(const ipc::Request& request);
  void post(std::uint32_t rank, const ipc::Request& request);
  // A packet has arrived at a kernel.
  void complete(const Completion& completion);
  // The rank's process has ended at this time: what it has left open is closed.
  void end(std::uint32_t rank, std::int64_t clock_ps);
  // The run has ended: completes the file of the packets.
  void finish() {
    if (capture_) capture_->finish();
  }
  [[nodiscard]] std::size_t calls_in_progress() const { return calls_.size(); }
  // A text for each call in which the rank waits: "recv on 10.0.0.1:5000, connected to 10.0.0.2:32768
  // (rank 1)".
  [[nodiscard]] std::vector<std::string> waits_of(std::uint32_t rank) const;

 private:
  static constexpr std::uint32_t first_address = 0x0a000001;  // 10.0.0.1
  static constexpr std::uint8_t prefix = 8;

  enum class Step : std::uint64_t {
    call_arrives,
    deadline,
    packet_is_taken,      // one that a card has received
    own_packet_is_taken,  // one that the node has sent to itself
    stack_is_due,
    rank_ends
  };

  struct Call {
    std::uint32_t rank = 0;
    ipc::Request request;
    ipc::SocketCall call;
    std::int64_t moved_bytes = 0;   // by a send or receive in parts
    std::int64_t least_bytes = -1;  // that end a receive from a stream; -1: it has not begun
    std::vector<std::byte> data;    // what a send has left
    std::vector<ipc::SocketPoll> polled;
    bool has_begun = false;  // connect
  };
  struct Node {
    std::uint32_t address = 0;
    ProcessId kernel = 0;
    std::unique_ptr<ip::Sockets> sockets;
    EventSource source;
    std::optional<ip::PacketLoss> loss;
    Time works_until;
    Time due = Time::never();            // when the event stack_is_due that counts comes
    std::vector<std::uint64_t> waiting;  // calls that wait, in the order in which they began to
    std::map<ip::Sockets::Number, std::uint32_t> owner;  // rank that has the socket
  };

  [[nodiscard]] std::string wait_text(const Node& node, const Call& call) const;
  [[nodiscard]] std::string socket_text(const Node& node, ip::Sockets::Number socket) const;
  // The rank that has the other end, in brackets; empty if it is not known.
  [[nodiscard]] std::string owner_text(const Node& node, ip::Endpoint local, ip::Endpoint remote) const;
  void handle_event(const Event& event) override;
  void begin(std::uint64_t id);
  void cancel(const Call& asks);
  void end_wait(std::uint64_t id);
  void close_all(std::uint32_t rank);
  void note_owner(const Call& call, const ipc::SocketAnswer& answer);
  void finish(std::uint64_t id, const ipc::SocketAnswer& answer);
  // Whether the call is done: then its answer. is_last: it may not wait any more.
  bool execute(Call& call, bool is_last, ipc::SocketAnswer& answer);
  bool execute_transfer(Call& call, ip::Sockets& sockets, bool is_last, ipc::SocketAnswer& answer);
  bool send(Call& call, ip::Sockets& sockets, bool is_last, ipc::SocketAnswer& answer);
  bool receive(Call& call, ip::Sockets& sockets, bool is_last, ipc::SocketAnswer& answer);
  [[nodiscard]] static std::int64_t bytes_waited_for(const Call& call, ip::Sockets& sockets);
  bool poll(Call& call, ip::Sockets& sockets, bool is_last, ipc::SocketAnswer& answer);
  // The stack may have changed: sends its packets, answers calls, and asks when it is due.
  void settle(Node& node);
  void send_packets(Node& node);
  void send_to_card(Node& node, std::uint32_t target, std::uint64_t id);
  void see(const Node& node, ip::PacketCapture::Direction direction, Time at,
           std::span<const std::byte> packet);
  void answer_calls(Node& node);
  void take_packet(Node& node, std::uint64_t id, Time interrupt);
  [[nodiscard]] static ProcessMemory::Place buffer_of(const Call& call) {
    return {.rank = call.rank, .process = call.call.process, .address = call.request.local_address};
  }
  Node& node_of(std::uint32_t rank) { return nodes_[node_of_rank_[rank]]; }

  Run run_;
  const message::DatagramCosts costs_;
  std::vector<std::uint32_t> node_of_rank_;  // index into nodes_
  std::vector<Node> nodes_;
  std::vector<EventSource> rank_sources_;
  std::map<std::uint32_t, std::uint32_t> node_at_;  // by address
  ProcessId first_kernel_;
  std::optional<ip::PacketCapture> capture_;
  std::uint32_t captured_address_ = 0;  // that of the only node whose packets are in the file; 0: all
  std::map<std::uint64_t, Call> calls_;
  std::uint64_t next_call_ = 0;
  std::map<std::uint64_t, std::vector<std::byte>> packets_;  // on their way
  std::uint64_t next_packet_ = 0;
  std::vector<std::byte> received_;  // a member to reuse its memory
};

}  // namespace apenet
