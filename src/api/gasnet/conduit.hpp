// Conduit: what GASNet needs of a network. Everything else of the library is made of it, once for all
// conduits.
//
// The caller of every function holds the process's lock (ipc::Inside), and has opened no other Inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
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

// Of a process, as all others know it.
struct Segment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;  // the conduit's name of the memory
};

class Conduit {
 public:
  virtual ~Conduit() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual native::Card& card() = 0;
  [[nodiscard]] virtual std::size_t max_long_bytes() const = 0;

  // Opens this process's segment to the others, and returns its key. nullopt: the card has no room for it.
  [[nodiscard]] virtual std::optional<std::uint64_t> open_segment(std::span<std::byte> memory) = 0;
  // Of all processes, by rank. Call before any long message, put or get.
  virtual void know_segments(std::vector<Segment> segments) = 0;

  // Takes the credits of a request to `target`; false if there are too few now: those who handle earlier
  // requests give them back.
  [[nodiscard]] virtual bool take_credits(std::uint32_t target, const Header& header) = 0;
  // Sends a message; a request has its credits. Waits until the network takes it, and keeps what arrives
  // meanwhile: it never waits for a handler.
  virtual void send(std::uint32_t target, Outgoing message) = 0;
  // The handler of a request has ended.
  virtual void give_back(const Incoming& request) = 0;

  // Puts and gets any number of bytes. `pending` counts what is not finished, and outlives it.
  virtual void put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source,
                   Pending& pending) = 0;
  virtual void get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination,
                   Pending& pending) = 0;

  // Looks once at the card, as the program's poll does, and charges it.
  virtual void look() = 0;
  // The oldest message that has arrived, if any.
  [[nodiscard]] virtual std::optional<Incoming> next() = 0;
  [[nodiscard]] virtual bool has_next() const = 0;
  // Waits until a message is there for next(), an access is finished, or done(), which another thread may
  // make true; for at most this virtual time, if any. `call`: for the report of a deadlock.
  virtual void await_progress(std::string_view call, const std::function<bool()>& done,
                              std::optional<Time> most) = 0;
  // Waits until done(), and keeps what arrives meanwhile: no handler runs.
  virtual void await(std::string_view call, const std::function<bool()>& done) = 0;

 protected:
  Conduit() = default;
  Conduit(const Conduit&) = default;
  Conduit& operator=(const Conduit&) = default;
};

}  // namespace apenet::gasnet
