// The registers of the flit engine's routers, in arrays over all routers. Their numbers have 16 bits where 8
// would do: a store of a byte may change anything, as the compiler sees it, and everything would be read
// again.
#pragma once

#include <cstdint>
#include <vector>

#include "network/flit_bits.hpp"
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
  std::uint16_t output = 0;  // output virtual channel held, or held last: the VC allocator's accept pointer
  FlitRequest request;       // result of route computation; of an adaptive one, what was asked for last
};

// An output virtual channel.
struct FlitOutputChannel {
  std::uint16_t credits = 0;
  std::uint16_t last_granted = 0;  // the VC allocator's grant pointer: the input that has or had it
};

// Which input virtual channels are in which stage, and which output virtual channels nobody holds.
template <std::size_t Words>
struct alignas(64) FlitStages {
  FlitBits<Words> routing;
  FlitBits<Words> allocating;
  FlitBits<Words> switching;
  FlitBits<Words> credited;  // input virtual channels that hold an output with a credit
  FlitBits<Words> free;      // output virtual channels
};

// Of a router's virtual channel.
struct FlitChannelNumber {
  std::uint8_t port = 0;
  std::uint8_t virtual_channel = 0;  // of that port
};

struct FlitChannelGrant {
  std::uint16_t input = 0;
  std::uint16_t output = 0;
};
// A flit may cross the switch.
struct FlitCrossing {
  FlitPlace input = 0;
  std::uint16_t input_port = 0;
  std::uint16_t output_port = 0;
  std::uint32_t input_index = 0;  // of the ports, in FlitFabric::port_table
  std::uint32_t output_index = 0;
};

// Used where any stage takes more than one cycle: what each is at work on, which it answers at the end of the
// cycle `done`. It is not asked before that; it is idle when nobody asked.
template <std::size_t Words>
struct FlitLongStages {
  FlitBits<Words> routing;
  FlitCycle routing_done = -1;
  std::vector<FlitChannelGrant> channel_grants;
  FlitCycle channel_grants_done = -1;
  std::vector<FlitCrossing> crossings;
  FlitCycle crossings_done = -1;

  [[nodiscard]] bool is_busy() const {
    return routing.any() || !channel_grants.empty() || !crossings.empty();
  }
};

}  // namespace apenet
