// The registers of the flit engine's routers, in arrays over all routers. Numbers have 16 bits where 8 would
// do: a byte may alias any object, so that after a store of one the compiler would read everything again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/flit/fabric.hpp"
#include "network/flit/route_unit.hpp"

namespace apenet {

// A flit in a buffer.
struct FlitBuffered {
  Flit flit;
  FlitRequest request;       // a header's computed route; with adaptive routing, the last choice
  std::uint16_t second = 0;  // in the first flit of a buffer: the position of the second in the ring
};

// An input virtual channel: its buffer, and the output virtual channel of its packet.
struct FlitInputChannel {
  std::uint16_t count = 0;  // flits, the first included
  // Output virtual channel of the router held, or held last: the VC allocator's accept pointer.
  std::uint16_t output = 0;
};

// An output virtual channel.
struct FlitOutputChannel {
  std::uint16_t credits = 0;
  // The VC allocator's grant pointer: the input virtual channel of the router that has or had it.
  std::uint16_t last_granted = 0;
};

// The requests of a block of routers for one stage, unordered and without duplicates.
template <typename Entry>
class FlitList {
 public:
  FlitList() = default;
  // The first `count` entries of an array with room for all inputs of a block and one more.
  FlitList(Entry* entries, std::size_t count) : begin_(entries), end_(entries + count) {}

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  [[nodiscard]] Entry* begin() const { return begin_; }
  [[nodiscard]] Entry* end() const { return end_; }
  [[nodiscard]] const Entry& operator[](std::size_t index) const { return begin_[index]; }
  void add(const Entry& entry) { *end_++ = entry; }
  // Uses no branch, because it would be unpredictable.
  void add_if(bool waits, const Entry& entry) {
    *end_ = entry;
    end_ += waits ? 1 : 0;
  }
  // Moves those of the first `count` for which `holds` is true to the front; returns their number.
  template <typename Holds>
  [[nodiscard]] std::size_t partition(std::size_t count, Holds holds) {
    return static_cast<std::size_t>(std::partition(begin_, begin_ + count, holds) - begin_);
  }
  // Replaces the first `count` entries by those of `kept`, which was built in their place.
  void replace(std::size_t count, const FlitList& kept) { end_ = std::copy(begin_ + count, end_, kept.end_); }

 private:
  Entry* begin_ = nullptr;
  Entry* end_ = nullptr;
};

// Output virtual channels of one port that an input virtual channel requests, or was granted.
struct FlitChannelRequest {
  FlitPlace input = 0;
  FlitPlace port = 0;      // its virtual channel 0
  std::uint64_t mask = 0;  // the virtual channels, a bit each
};

using FlitPlaceList = FlitList<FlitPlace>;
using FlitCrossingList = FlitList<FlitCrossing>;

// The work of a router whose stages take several cycles. A stage answers at the end of its cycle `done` and
// accepts no request before that; an empty stage is idle.
struct FlitBusyStages {
  std::vector<FlitPlace> routing;
  FlitCycle routing_done = -1;
  std::vector<FlitCrossing> channel_grants;
  FlitCycle channel_grants_done = -1;
  std::vector<FlitCrossing> crossings;
  FlitCycle crossings_done = -1;

  [[nodiscard]] bool is_busy() const {
    return !routing.empty() || !channel_grants.empty() || !crossings.empty();
  }
};

}  // namespace apenet
