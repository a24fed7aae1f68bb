// Flights: the requests under way, and the bytes that belong to them.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/nic.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/scheduler/process_memory.hpp"

namespace apenet {

// One request between its post and its last completion.
struct Flight {
  ipc::Request request;
  std::uint32_t rank = 0;                           // who posted it
  std::uint8_t completions_due = 0;                 // complete() calls still to come
  bool land_due = false;                            // put, get: bytes not yet moved
  bool staged = false;                              // put: read from the source into `staging`
  ipc::AccessFault fault = ipc::AccessFault::none;  // why nothing is moved
  std::vector<std::byte> staging;
};

// A slab of flights. The number by which the model knows a flight is (generation << 24 | index): unique for
// ever, as nic.hpp asks, and found without a search.
class Flights {
 public:
  // Throws RankError when there are more than fit.
  std::uint64_t add(std::uint32_t rank, const ipc::Request& request);
  [[nodiscard]] Flight& at(std::uint64_t number);
  // Frees the flight if nothing is due any more.
  void settle(std::uint64_t number);
  [[nodiscard]] std::size_t count() const { return slab_.size() - free_.size(); }

 private:
  static constexpr std::uint64_t index_bits = 24;
  std::vector<Flight> slab_;
  std::vector<std::uint32_t> free_;
  std::uint64_t generation_ = 0;
};

// Whether the target has opened the memory that a put or get names by a key; then its address is known.
void permit(Flight& flight, const ipc::RegionTable& regions_of_target);
// Reads a put's source bytes into the flight; called when the source may be reused from now on.
void stage(Flight& flight, ProcessMemory& memory);
// Moves the bytes of a put or a get to where they belong.
void move_bytes(Flight& flight, ProcessMemory& memory);

}  // namespace apenet
