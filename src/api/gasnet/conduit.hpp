// Conduit: Active Messages, puts and gets of a process over the core of a network.
//
// A message is cut into packets as one row of bytes: header, arguments, payload. Requests take credits, in
// packets, for each pair of processes; replies and signals need none, because each belongs to a request. So
// what waits in memory for a handler is bounded, a process that waits to send takes all that arrives, and
// neither direction can block the other.
//
// The caller of every function holds the process's lock (ipc::Inside), and has opened no other Inside.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/gasnet/core.hpp"

namespace apenet::gasnet {

// A card reaches registered memory only. So where all memory is to be reached, long messages carry their
// payload, and there are no puts and gets of the network.
class Conduit {
 public:
  Conduit(std::unique_ptr<Core> core, Reach reach);

  [[nodiscard]] std::string_view name() const { return core_->name(); }
  [[nodiscard]] native::Card& card() { return core_->card(); }
  [[nodiscard]] std::size_t max_long_bytes() const;
  // Ends the process's part of the run, before it exits with this code. is_common: all processes do so.
  void close(int code, bool is_common) { core_->close(code, is_common); }

  // Opens this process's segment to the others, and returns its key. nullopt: the card has no room for it.
  [[nodiscard]] std::optional<std::uint64_t> open_segment(std::span<std::byte> memory);
  // segments: of all processes, by rank. Call before any long message, put or get.
  void know_segments(const std::vector<Segment>& segments);

  // Takes the credits of a request to `target`; false if there are too few now: those who handle earlier
  // requests give them back.
  [[nodiscard]] bool take_credits(std::uint32_t target, const Header& header);
  // Sends a message; a request has its credits. Waits until the network takes it, and keeps what arrives
  // meanwhile: it never waits for a handler.
  void send(std::uint32_t target, Outgoing message);
  // The handler of a request begins: the next message to its source carries the credits.
  void owe(const Incoming& request) { peers_[request.source].owed += request.credits_used; }
  // A handler of a request of this process has ended: sends credits that no message has carried.
  void give_back(std::uint32_t source);

  // Whether put() and get() exist. If not, they are made of messages: reference_access.hpp.
  [[nodiscard]] bool has_remote_access() const { return memory_ != nullptr && reach_ == Reach::segment; }
  // The longest payload of such messages with this many arguments: that of one packet, or a medium one's.
  [[nodiscard]] std::size_t reference_bytes(std::size_t arguments) const {
    const std::size_t beside = Header::bytes + arguments * sizeof(Argument);
    return std::max(max_medium_bytes, traits_.packet_bytes > beside ? traits_.packet_bytes - beside : 0);
  }
  // Puts and gets any number of bytes. `pending` counts what is not finished, and outlives it.
  void put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source, Pending& pending);
  void get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination, Pending& pending);

  // Polls the network once, as the program's poll does, and charges it.
  void poll();
  // The oldest message that has arrived, if any.
  [[nodiscard]] std::optional<Incoming> next();
  [[nodiscard]] bool has_next() const { return !ready_.empty(); }
  // Waits until a message is there for next(), an access is finished, or done(), which another thread may
  // make true; for at most this virtual time, if any. `call`: for the report of a deadlock.
  void await_progress(std::string_view call, const std::function<bool()>& done, std::optional<Time> most);
  // Waits until done(), and keeps what arrives meanwhile: no handler runs.
  void await(std::string_view call, const std::function<bool()>& done);

 private:
  struct Peer {
    std::uint32_t credits = 0;       // credits for requests to it, in packets
    std::uint32_t owed = 0;          // credits of its requests whose handlers have begun
    std::vector<std::byte> bytes;    // so far, of the message whose packets are arriving
    std::deque<Incoming> long_ones;  // messages without their data
    std::deque<Landing> landings;    // data without their message
  };

  // Where the parts of a message end, each of which begins a packet. The last are empty if there are fewer.
  [[nodiscard]] std::array<std::size_t, 3> part_ends(const Header& header) const;
  [[nodiscard]] std::uint32_t packets(const Header& header) const;
  // Waits until done(), and takes out of the card all that arrives.
  template <typename Done>
  void wait(std::string_view call, Done done);
  void send_packets(std::uint32_t target, const Header& header, std::span<const std::byte> bytes);
  [[nodiscard]] bool has_arrival() const {
    return core_->has_packet() || (memory_ != nullptr && memory_->has_notification());
  }
  void take_arrivals();
  void take_packet();
  void take_notifications();
  void finish_message(std::uint32_t source);
  void finish_long(Incoming message);
  void match_landings(std::uint32_t source);
  [[nodiscard]] bool expects_notification() const { return !memory_->is_idle() || long_waiting_ > 0; }

  std::unique_ptr<Core> core_;
  Reach reach_;
  Core::Traits traits_;
  RemoteMemory* memory_;
  std::vector<Peer> peers_;
  std::deque<Incoming> ready_;
  std::size_t long_waiting_ = 0;  // elements of all Peer::long_ones
  bool is_sending_ = false;       // a thread is between the packets of a message
};

}  // namespace apenet::gasnet
