// The published card-level tests, on processes that use the card directly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "machine/description.hpp"
#include "machine/message_work.hpp"
#include "network/packet.hpp"

namespace apenet {

// docs/reference/tests.md defines for each test which clock is read and what is divided by what. Sources:
// hep-lat/0409071 section 4 for ping-pong and bidirectional; PoS(LAT2005)100 section 2 for one-way, round
// trip and unidirectional; the slides of DESY Zeuthen, 2011, for ping-ping; the poster of CHEP 2016 for
// flush.
enum class CardTest : std::uint8_t {
  pingpong,        // a message and a reply of the same size; time: half the round trip
  pingping,        // both send at once, then both receive; time: the round
  roundtrip,       // as ping-pong; time: the whole round trip
  oneway,          // n messages one after another; time: total / n, a gap and not a latency
  unidirectional,  // as oneway with `window` messages at once: the sender waits for its buffers
  bidirectional,   // both send at once and wait for both (sendrecv), `window` at once; bandwidth: both ways
  flush,           // n messages posted at once; time: until the sender has all its completions, / n
  rate,            // n puts without notification, in windows; time: total / n
};

// Place of a side's buffer, and the way of its bytes to the memory that the card accesses.
enum class Buffer : std::uint8_t {
  host,         // pinned: the card reads and writes it
  host_copied,  // not zero-copy: the CPU copies from and to DMA buffers
  gpu,          // the card reads and writes the GPU's memory
  gpu_staged,   // copied between the GPU and a pinned host buffer, before and after
};

enum class Path : std::uint8_t { automatic, send, put };  // automatic: send up to the card's largest send

struct CardTestOptions {
  std::vector<std::int64_t> sizes;  // bytes of a message
  std::uint32_t iterations = 0;     // 0: chosen by the test
  std::uint16_t channels = 1;       // simultaneous messages of this size, one on each hardware queue
  std::vector<NodeId> nodes;        // the two nodes; empty: node 0 and its neighbour in +X
  std::uint32_t window = 0;         // messages in flight; 0: the test's default
  Buffer local = Buffer::host;      // at the first node
  Buffer remote = Buffer::host;     // at the second node
  Path path = Path::automatic;
  bool until_landed = false;      // oneway: ends when all completions are there, not with a closing reply
  std::int64_t region_bytes = 0;  // memory through which each channel's messages walk; 0: one buffer
};

struct TestPoint {
  std::int64_t size_bytes = 0;
  Time time;                          // defined by the test (CardTest); to_us() for reports
  double bandwidth_mib_s = 0.0;       // MiB = 2^20 bytes
  std::vector<std::string> warnings;  // Machine::warnings()
};

// Measures with description.card_software, each size on a fresh machine. Throws std::invalid_argument, which
// names the invalid option.
[[nodiscard]] std::vector<TestPoint> run_card_test(const MachineDescription& description, CardTest test,
                                                   const CardTestOptions& options);

// The work of all sizes, to which the host's time is proportional; without the messages that only begin or
// end a stream. Throws like run_card_test.
[[nodiscard]] PacketHops count_packet_hops(const MachineDescription& description, CardTest test,
                                           const CardTestOptions& options);

}  // namespace apenet
