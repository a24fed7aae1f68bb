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

// An input virtual channel: its buffer, and what its packet was given. Three to a cache line; what the switch
// must know of the packet stands here, so that it does not look it up.
struct FlitInputChannel {
  Flit front;                // the first flit of the buffer; those behind it are in a ring
  std::uint16_t next = 0;    // the second one, in that ring
  std::uint16_t count = 0;   // flits, the first included
  std::uint16_t output = 0;  // output virtual channel held, or held last: the VC allocator's accept pointer
  std::uint16_t output_port = 0;  // that it belongs to
  FlitRequest request;            // result of route computation
  std::uint32_t wire_bytes = 0;   // of the packet
};

// The round-robin pointers of one port: who was served last. Reset: the last one, so that number 0 is first.
struct FlitPortArbiters {
  std::uint16_t granted_input = 0;    // as output of the switch: grant pointer
  std::uint16_t accepted_output = 0;  // as input of the switch: accept pointer
  std::uint16_t served_channel = 0;   // as input: which virtual channel asks on behalf of the port
};

// Which input virtual channels are in which stage, and which output virtual channels nobody holds.
template <std::size_t Words>
struct FlitStages {
  FlitBits<Words> routing;
  FlitBits<Words> allocating;
  FlitBits<Words> switching;
  FlitBits<Words> free;
  FlitBits<Words> has_credit;  // output virtual channels
};

// A stage of more than one cycle works on one set of channels at a time, and takes the next set when it is
// done with that.
template <std::size_t Words>
struct FlitStageWork {
  FlitBits<Words> channels;
  FlitCycle done = -1;  // the cycle at whose end the results hold
  [[nodiscard]] bool is_busy() const { return channels.any(); }
};

struct FlitChannelGrant {
  std::uint16_t input = 0;
  std::uint16_t output = 0;
};
struct FlitSwitchGrant {
  std::uint8_t input_port = 0;
  std::uint8_t output_port = 0;
  std::uint8_t virtual_channel = 0;  // of the input port
};

// Used where any stage takes more than one cycle.
template <std::size_t Words>
struct FlitLongStages {
  FlitStageWork<Words> routing;
  FlitStageWork<Words> allocating;
  FlitStageWork<Words> switching;
  std::vector<FlitChannelGrant> channel_grants;
  std::vector<FlitSwitchGrant> switch_grants;
};

}  // namespace apenet
