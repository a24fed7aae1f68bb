// The scripts of the card-level tests: what each of the two processes does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "runtime/scripted/card_process.hpp"
#include "runtime/scripted/card_tests.hpp"
#include "runtime/scripted/script.hpp"

namespace apenet {

// The two processes of a test.
inline constexpr ProcessId first_process = 0;
inline constexpr ProcessId second_process = 1;

// One message of a test: `channels` simultaneous transfers of `bytes`, each cut into pieces that fit a
// descriptor.
struct Exchange {
  std::int64_t bytes = 0;
  std::int64_t piece_bytes = 0;
  std::int64_t max_pio_bytes = 0;      // the CPU writes sends up to this size, as message passing does
  std::int64_t max_pio_put_bytes = 0;  // the same of puts
  std::int64_t region_bytes = 0;
  std::uint16_t channels = 1;
  std::optional<Verb> verb;  // none: what is cheaper
  bool is_dropped = false;   // by the target's card: process 1 gets no completions and expects no messages
  std::array<Buffer, 2> buffers{};  // process 0's, then process 1's

  [[nodiscard]] std::int64_t pieces() const {
    return std::max<std::int64_t>(1, (bytes + piece_bytes - 1) / piece_bytes);
  }
  [[nodiscard]] std::int64_t piece(std::int64_t number) const {
    return std::min(piece_bytes, bytes - number * piece_bytes);
  }
  [[nodiscard]] std::int64_t total_bytes() const { return bytes * channels; }
  // A message without payload, which ends the test.
  [[nodiscard]] Exchange closing() const;
};

struct Rounds {
  std::uint32_t warmup = 0;
  std::uint32_t measured = 0;
  std::uint32_t window = 1;
};

// Each script stores its process's clock here: after the warm-up and at the end.
struct Clocks {
  Time begin;
  Time end;
};

// Processes 0 and 1 of a ping-pong.
Script ping(CardProcess& process, Exchange exchange, Rounds rounds, Clocks* clocks);
Script pong(CardProcess& process, Exchange exchange, Rounds rounds);

// Either process of a test in which both send. waits_for_sent: also wait until the own buffers are free.
Script send_and_receive(CardProcess& process, Exchange exchange, Rounds rounds, bool waits_for_sent,
                        Clocks* clocks);

// When a stream from process 0 to process 1 ends.
enum class StreamEnd : std::uint8_t {
  reply,   // process 1 has received everything, and its reply has arrived
  landed,  // both processes have all their completions
  sent,    // process 0 has all its completions
};
// Before each message the sender waits for the buffers of the message `window` earlier; 0: it never waits.
Script stream_out(CardProcess& process, Exchange exchange, Rounds rounds, StreamEnd end, Clocks* clocks);
Script stream_in(CardProcess& process, Exchange exchange, Rounds rounds, StreamEnd end, Clocks* clocks);

// Puts without notification, except the last of each channel. The last put of each window reports that its
// buffer is free, and the sender waits for that before the window after the next.
Script put_out(CardProcess& process, Exchange exchange, Rounds rounds, Clocks* clocks);
Script put_in(CardProcess& process, Exchange exchange, Rounds rounds, Clocks* clocks);

}  // namespace apenet
