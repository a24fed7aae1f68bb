// ReplayLog: when each operation of a replay ran, and why each rank waited.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/time.hpp"
#include "nic/nic.hpp"
#include "nic/stage.hpp"

namespace apenet {

// The protocol's message whose completion ended a wait.
enum class MessageRole : std::uint8_t {
  eager,    // with its payload, or a piece of it
  ready,    // the sender is ready for a rendezvous
  clear,    // the receiver tells where the payload goes
  payload,  // the payload of a rendezvous
  other,
};

// The first CPU of `rank` had nothing to do from `from` until `until`, when it took a completion of a message
// that `source` had posted at `posted`, for its own operation number `operation`.
struct WaitRecord {
  ProcessId rank = 0;
  ProcessId source = 0;
  std::uint32_t operation = 0;  // number at the source
  Time from{};
  Time until{};
  Time posted{};
  std::int64_t bytes = 0;
  MessageRole role = MessageRole::other;
  bool is_arrival = false;  // else the completion of the rank's own message
};

// How long the message that ended a wait was in a stage: from its post on, and while it was awaited. Columns,
// because a wait has some five stages, and a replay may have millions of waits.
struct StageShares {
  std::vector<std::uint32_t> wait;  // number of the wait
  std::vector<Stage> stage;
  std::vector<std::int64_t> whole_ps;
  std::vector<std::int64_t> awaited_ps;
};

// Filled by a replay that is asked for it. Times are those of the operation's CPU.
struct ReplayLog {
  std::vector<WaitRecord> waits;  // in the order in which they ended; those of one rank in the order of time
  StageShares stages;             // wait after wait; those of one wait sum to its message's time
  std::vector<std::vector<Time>> began;  // [rank][operation]
  std::vector<std::vector<Time>> ended;
};

}  // namespace apenet
