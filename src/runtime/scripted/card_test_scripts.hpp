// The scripts of the card-level tests: what each of the two processes does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/scripted/card_tests.hpp"
#include "runtime/scripted/script.hpp"
#include "runtime/scripted/scripted_process.hpp"

namespace apenet {

// One message of a test: `channels` transfers of `bytes` at once, each in pieces that one descriptor carries.
struct Exchange {
  std::int64_t bytes = 0;
  std::int64_t piece_bytes = 0;
  std::int64_t max_pio_bytes = 0;  // a piece up to this is written by the CPU, as message passing does
  std::int64_t region_bytes = 0;
  std::uint16_t channels = 1;
  bool only_put = false;
  bool is_dropped = false;  // by the target's card: process 1 is not told of messages, and expects none
  std::array<Buffer, 2> buffers{};  // of process 0, of process 1

  [[nodiscard]] std::int64_t pieces() const {
    return std::max<std::int64_t>(1, (bytes + piece_bytes - 1) / piece_bytes);
  }
  [[nodiscard]] std::int64_t piece(std::int64_t number) const {
    return std::min(piece_bytes, bytes - number * piece_bytes);
  }
  [[nodiscard]] std::int64_t total_bytes() const { return bytes * channels; }
  // A message without payload, which says that the test is over.
  [[nodiscard]] Exchange closing() const;
};

struct Rounds {
  std::uint32_t warmup = 0;
  std::uint32_t measured = 0;
  std::uint32_t window = 1;
};

// Each script stores its process's clock here: after the warm-up, and when it is done.
struct Clocks {
  Time begin;
  Time end;
};

// Process 0 of a ping-pong, and process 1.
Script ping(ScriptedProcess& process, Exchange exchange, Rounds rounds, Clocks* clocks);
Script pong(ScriptedProcess& process, Exchange exchange, Rounds rounds);

// Both processes of a test in which both send. `waits_for_sent`: for its own buffers as well.
Script send_and_receive(ScriptedProcess& process, Exchange exchange, Rounds rounds, bool waits_for_sent,
                        Clocks* clocks);

// When a stream from process 0 to process 1 is over.
enum class StreamEnd : std::uint8_t {
  reply,   // process 1 has everything, and its reply is back
  landed,  // both have all their completions
  sent,    // process 0 has all of its own
};
// The sender waits for the buffers of the message `window` before; window 0: for none.
Script stream_out(ScriptedProcess& process, Exchange exchange, Rounds rounds, StreamEnd end, Clocks* clocks);
Script stream_in(ScriptedProcess& process, Exchange exchange, Rounds rounds, StreamEnd end, Clocks* clocks);

// Puts that notify nobody, but for the last of each channel. The last of every window reports that its buffer
// is free, and the window after the next waits for it.
Script put_out(ScriptedProcess& process, Exchange exchange, Rounds rounds, Clocks* clocks);
Script put_in(ScriptedProcess& process, Exchange exchange, Rounds rounds, Clocks* clocks);

}  // namespace apenet
