// Core: what a conduit writes itself. Class Conduit makes Active Messages of it, and operations.hpp the rest
// of GASNet, once for all conduits.
//
// The caller of every function holds the process's lock (ipc::Inside), and has opened no other Inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/gasnet/active_message.hpp"
#include "api/native/card.hpp"

namespace apenet::gasnet {

// Remote accesses that are not finished.
struct Pending {
  std::uint32_t sources = 0;   // puts whose source must not change yet
  std::uint32_t accesses = 0;  // puts that are not in the target's memory yet, and gets that are not here yet

  [[nodiscard]] bool is_empty() const { return sources == 0 && accesses == 0; }
};

// A process's segment, as all others know it.
struct Segment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;  // the conduit's name of the memory
};

// The payload of a long message that is in this process's segment: reported by LongPayload::notified.
struct Landing {
  std::uint32_t source = 0;
  std::byte* address = nullptr;
};

// Remote access of a network that has it.
class RemoteMemory {
 public:
  // Opens this process's segment to the others, and returns its key. nullopt: the card has no room for it.
  [[nodiscard]] virtual std::optional<std::uint64_t> open_segment(std::span<std::byte> memory) = 0;
  // segments: of all processes, by rank. Call before any put or get.
  virtual void know_segments(const std::vector<Segment>& segments) = 0;

  [[nodiscard]] virtual std::size_t most_bytes() const = 0;  // largest access
  // Whether put() or get() finds its resources now.
  [[nodiscard]] virtual bool has_place(std::uint32_t target) const = 0;
  // Both require has_place(). `pending` counts what is not finished, and outlives it. tells_target: of a long
  // message; then `pending` need not count the access, but only the source.
  virtual void put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source,
                   bool tells_target, Pending& pending) = 0;
  virtual void get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination,
                   Pending& pending) = 0;

  // Takes the notifications that are there, and charges a poll if there is none.
  virtual void poll_notifications() = 0;
  [[nodiscard]] virtual bool has_notification() const = 0;
  // No access is under way.
  [[nodiscard]] virtual bool is_idle() const = 0;
  // LongPayload::notified: what poll_notifications() has found.
  [[nodiscard]] std::deque<Landing>& landings() { return landings_; }

 protected:
  ~RemoteMemory() = default;
  std::deque<Landing> landings_;
};

class Core {
 public:
  static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

  // How the conduit uses the core. Requires that the largest request has at most credits - slack packets.
  struct Traits {
    std::size_t packet_bytes = 0;  // most of a packet
    std::uint32_t credits = 0;     // packets of requests to one peer whose handlers have not begun
    std::uint32_t slack = 0;       // credits that a process keeps until a message of its own carries them
    LongPayload long_payload = LongPayload::in_message;
    std::uint32_t packets_a_poll = unlimited;  // that a poll takes
    bool separates_sections = false;           // header, arguments and payload begin a packet each
    bool gathers = false;         // a message is copied out of its packets, not worked on in place
    bool copies_packets = false;  // each packet is copied once more on its way to its message
    bool always_polls_notifications = false;  // also when none is expected
  };
  struct Arrival {
    std::uint32_t source = 0;
    bool is_first = true;  // first packet of a message
    std::size_t bytes = 0;
  };

  virtual ~Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual native::Card& card() = 0;
  [[nodiscard]] virtual Traits traits() const = 0;
  // nullptr: the network has no remote access.
  [[nodiscard]] virtual RemoteMemory* memory() = 0;

  // Packets of one process to another arrive once and in order.
  [[nodiscard]] virtual bool has_room(std::uint32_t target) const = 0;
  // Requires has_room().
  virtual void send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) = 0;
  // Whether there is a packet; if not, a poll is charged.
  [[nodiscard]] virtual bool poll() = 0;
  [[nodiscard]] virtual bool has_packet() const = 0;
  // The oldest packet. Both require has_packet().
  [[nodiscard]] virtual Arrival oldest() const = 0;
  virtual void take(std::span<std::byte> to) = 0;  // as many bytes as it has

  // Waits until done(), which another thread may make true; for at most this virtual time, if any. done() may
  // ask this core. `call`: for the report of a deadlock.
  virtual void await(std::string_view call, const std::function<bool()>& done, std::optional<Time> most) {
    if (most) {
      card().wait_for(call, *most, done);
    } else {
      card().wait_until(call, done);
    }
  }
  // Ends the process's part of the run, before it exits with this code. is_common: all processes do so.
  virtual void close(int /*code*/, bool /*is_common*/) { card().close(); }

 protected:
  Core() = default;
};

}  // namespace apenet::gasnet
