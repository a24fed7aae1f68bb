// The published card-level tests, on scripted processes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/time.hpp"
#include "machine/description.hpp"
#include "network/packet.hpp"

namespace apenet {

// After the texts of the papers: hep-lat/0409071 for ping-pong and bidirectional, PoS(LAT2005)100 section 2
// for the others.
enum class CardTest : std::uint8_t {
  pingpong,        // message and full reply; time: half the round trip
  roundtrip,       // the same; time: the whole round trip
  oneway,          // n messages one after another, one closing reply; time: all / n, a gap and not a latency
  unidirectional,  // as oneway, with `window` messages at once: the sender waits for its buffers
  bidirectional,   // both send at once and wait for both (sendrecv); bandwidth: both directions together
};

struct CardTestOptions {
  std::vector<std::int64_t> sizes;  // bytes of a message
  std::uint32_t iterations = 20;
  std::uint32_t warmup = 2;    // rounds before the clock starts
  std::uint16_t channels = 1;  // messages of this size at once, one on each hardware queue
  std::vector<NodeId> nodes;   // the two that talk; empty: node 0 and its neighbour in +X
  std::uint32_t window = 16;   // unidirectional
  bool copied = false;         // not zero-copy: the CPU copies out of and into buffers for DMA
};

struct TestPoint {
  std::int64_t size_bytes = 0;
  Time time;                     // what the test's name says; to_us() for reports
  double bandwidth_mib_s = 0.0;  // MiB = 2^20 bytes
};

// Measures with description.card_software, each size on a fresh machine. Throws std::invalid_argument naming
// the option that cannot be.
[[nodiscard]] std::vector<TestPoint> run_card_test(const MachineDescription& description, CardTest test,
                                                   const CardTestOptions& options);

}  // namespace apenet
