// The registers of the flit engine's routers, in arrays over all routers. Their numbers have 16 bits where 8
// would do: a store of a byte may change anything, as the compiler sees it, and everything would be read
// again.
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
  FlitRequest request;  // of a header: result of route computation; of an adaptive one, what was asked last
  std::uint16_t second = 0;  // of the first flit of a buffer: where in the ring behind it the second one is
};

// An input virtual channel: its buffer, and what its packet was given.
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

// Those of a block of routers that wait for one stage, in any order, each once: by the place of their input,
// or more.
template <typename Entry>
class FlitList {
 public:
  FlitList() = default;
  // Of the first `count` there; room for all inputs of a block, and one more.
  FlitList(Entry* entries, std::size_t count) : begin_(entries), end_(entries + count) {}

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  [[nodiscard]] Entry* begin() const { return begin_; }
  [[nodiscard]] Entry* end() const { return end_; }
  [[nodiscard]] const Entry& operator[](std::size_t index) const { return begin_[index]; }
  void add(const Entry& entry) { *end_++ = entry; }
  // Without a branch: whether one waits cannot be predicted.
  void add_if(bool waits, const Entry& entry) {
    *end_ = entry;
    end_ += waits ? 1 : 0;
  }
  // Those of the first `count` for which `holds` stand first from now on. How many they are.
  template <typename Holds>
  [[nodiscard]] std::size_t partition(std::size_t count, Holds holds) {
    return static_cast<std::size_t>(std::partition(begin_, begin_ + count, holds) - begin_);
  }
  // Of the first `count`, those that were added to `kept` in their stead, and all behind them.
  void replace(std::size_t count, const FlitList& kept) { end_ = std::copy(begin_ + count, end_, kept.end_); }

 private:
  Entry* begin_ = nullptr;
  Entry* end_ = nullptr;
};

// An input virtual channel asks for output virtual channels of one port, or was given them.
struct FlitChannelRequest {
  FlitPlace input = 0;
  FlitPlace port = 0;      // its virtual channel 0
  std::uint64_t mask = 0;  // the virtual channels, a bit each
};

using FlitPlaceList = FlitList<FlitPlace>;
using FlitCrossingList = FlitList<FlitCrossing>;

// Used where any stage takes more than one cycle: what each is at work on, which it answers at the end of the
// cycle `done`. It is not asked before that; it is idle when nobody asked.
struct FlitLongStages {
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
