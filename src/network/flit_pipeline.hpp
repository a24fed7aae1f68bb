// The registers of the flit engine's routers, in arrays over all routers. Their numbers have 16 bits where 8
// would do: a store of a byte may change anything, as the compiler sees it, and everything would be read
// again.
#pragma once

#include <cstdint>
#include <vector>

#include "network/flit_fabric.hpp"
#include "network/flit_route_unit.hpp"

namespace apenet {

// An input virtual channel: its buffer, and what its packet was given. Four to a cache line; what the switch
// must know of the packet stands here, so that it does not look it up.
struct FlitInputChannel {
  Flit front;                    // the first flit of the buffer; those behind it are in a ring
  std::uint32_t wire_bytes = 0;  // of the packet
  std::uint16_t next = 0;        // the second one, in that ring
  std::uint16_t count = 0;       // flits, the first included
  // Output virtual channel of the router held, or held last: the VC allocator's accept pointer.
  std::uint16_t output = 0;
  FlitRequest request;  // result of route computation; of an adaptive one, what was asked for last
};

// An output virtual channel.
struct FlitOutputChannel {
  std::uint16_t credits = 0;
  // The VC allocator's grant pointer: the input virtual channel of the router that has or had it.
  std::uint16_t last_granted = 0;
};

// Which input virtual channels are in which stage, and which output virtual channels nobody holds: of the 64
// places that begin at a multiple of 64. That are a few routers, or a part of one; those of a port are never
// divided.
struct alignas(32) FlitStages {
  std::uint64_t routing = 0;
  std::uint64_t allocating = 0;
  std::uint64_t switching = 0;  // those with a flit and a credit
  std::uint64_t free = 0;       // output virtual channels

  [[nodiscard]] static std::uint64_t bit(FlitPlace place) { return std::uint64_t{1} << place % 64; }
};

// An input virtual channel asks for output virtual channels of one port, or was given them.
struct FlitChannelRequest {
  FlitPlace input = 0;
  FlitPlace port = 0;      // its virtual channel 0
  std::uint64_t mask = 0;  // the virtual channels, a bit each
};

// The first flit of an input virtual channel may cross the switch.
struct FlitCrossing {
  static constexpr FlitPlace lost = 0xffffffff;  // as output: it may not
  FlitPlace input = 0;
  FlitPlace output = 0;
};

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
