// RankState: what a rank does, as far as the scheduler knows. One table says what may follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace apenet {

// rank_state.cpp says what each state means; docs/internals/rank-states.md prints it.
enum class RankState : std::uint8_t {
  running,
  queued,
  awaiting_event,
  awaiting_time,
  polling,
  computing,
  flushing,
  starting,
  suspended,
  computing_ended,
  ended,
  finished,
};
inline constexpr std::size_t rank_state_count = 12;

// Takes a rank from one state to another. Reports are what its process has written into its block when it
// began to wait; a step reads and checks them once (request_validation.hpp).
enum class RankInput : std::uint8_t {
  reports_event_wait,
  reports_time_wait,
  reports_polling,
  reports_compute,
  reports_flush,
  reports_start,
  reports_leave,
  queue,
  grant,
  suspend,
  process_ends,
  process_ends_computing,
  retire,
};
inline constexpr std::size_t rank_input_count = 13;

struct RankTransition {
  RankState from;
  RankInput input;
  RankState to;
};

// All that exist. Whatever the table does not list is refused.
[[nodiscard]] std::span<const RankTransition> rank_transitions();
// Empty if the table does not list it.
[[nodiscard]] std::optional<RankState> next_state(RankState from, RankInput input);

[[nodiscard]] std::string_view name_of(RankState state);
[[nodiscard]] std::string_view meaning_of(RankState state);
[[nodiscard]] std::string_view name_of(RankInput input);
[[nodiscard]] std::string_view meaning_of(RankInput input);

}  // namespace apenet
