#include "runtime/scheduler/rank_state.hpp"

#include <array>

namespace apenet {
namespace {

struct NamedMeaning {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array<NamedMeaning, rank_state_count> states{{
    {"running",
     "has the grant: its process uses its block, and all others that wait for the model wait for it"},
    {"queued", "is woken, and waits for a grant: it runs when the ranks granted before it wait"},
    {"awaiting_event",
     "acts at its next event, or at its deadline if another of its threads sleeps until then"},
    {"awaiting_time", "acts at its deadline, once all events up to it are known"},
    {"polling", "the same, in a long row of empty polls: if nothing is under way, only an event ends it"},
    {"computing", "overlapped compute: acts at its deadline, and its process computes meanwhile"},
    {"flushing", "acts at once when its rings are empty; no virtual time passes"},
    {"starting", "waits in the barrier at which virtual time begins"},
    {"suspended", "blocked outside the simulation: the others go on without it until it comes back"},
    {"computing_ended", "its process has ended in overlapped compute: the others go on up to its deadline"},
    {"ended", "its process has ended: the next step reads what it has left"},
    {"finished", "takes no part any more"},
}};

constexpr std::array<NamedMeaning, rank_input_count> inputs{{
    {"reports_event_wait", "the process waits for an event"},
    {"reports_time_wait", "the process waits for all events up to a time"},
    {"reports_polling", "the same, after a long row of empty polls"},
    {"reports_compute", "the process computes up to a time"},
    {"reports_flush", "a ring of the process is full"},
    {"reports_start", "the process has reached the end of `MPI_Init`"},
    {"reports_leave", "the process has left the simulation"},
    {"queue", "the scheduler wakes it behind others"},
    {"grant", "the scheduler lets it run"},
    {"suspend", "it is blocked in the host, and the others go on"},
    {"process_ends", "its process ends"},
    {"process_ends_computing", "its process ends in overlapped compute"},
    {"retire", "a step has read what its process has left"},
}};

using enum RankState;
using enum RankInput;

constexpr std::array transitions{
    RankTransition{running, reports_event_wait, awaiting_event},
    RankTransition{running, reports_time_wait, awaiting_time},
    RankTransition{running, reports_polling, polling},
    RankTransition{running, reports_compute, computing},
    RankTransition{running, reports_flush, flushing},
    RankTransition{running, reports_start, starting},
    RankTransition{running, reports_leave, finished},
    RankTransition{running, suspend, suspended},
    RankTransition{running, process_ends, ended},
    RankTransition{running, process_ends_computing, computing_ended},
    RankTransition{queued, grant, running},
    RankTransition{queued, process_ends, ended},
    RankTransition{awaiting_event, queue, queued},
    RankTransition{awaiting_event, grant, running},
    RankTransition{awaiting_event, process_ends, ended},
    RankTransition{awaiting_time, queue, queued},
    RankTransition{awaiting_time, grant, running},
    RankTransition{awaiting_time, process_ends, ended},
    RankTransition{polling, queue, queued},
    RankTransition{polling, grant, running},
    RankTransition{polling, process_ends, ended},
    RankTransition{computing, queue, queued},
    RankTransition{computing, grant, running},
    RankTransition{computing, process_ends_computing, computing_ended},
    RankTransition{flushing, queue, queued},
    RankTransition{flushing, grant, running},
    RankTransition{flushing, process_ends, ended},
    RankTransition{starting, queue, queued},
    RankTransition{starting, grant, running},
    RankTransition{starting, process_ends, ended},
    RankTransition{suspended, reports_time_wait, awaiting_time},
    RankTransition{suspended, reports_polling, polling},
    RankTransition{suspended, process_ends, ended},
    RankTransition{computing_ended, reports_compute, computing_ended},
    RankTransition{computing_ended, queue, ended},
    RankTransition{computing_ended, grant, ended},
    RankTransition{ended, retire, finished},
    RankTransition{finished, process_ends, finished},
};

constexpr std::uint8_t refused = 0xff;

constexpr auto by_state_and_input = [] {
  std::array<std::array<std::uint8_t, rank_input_count>, rank_state_count> table{};
  for (auto& row : table) row.fill(refused);
  for (const RankTransition& transition : transitions)
    table[static_cast<std::size_t>(transition.from)][static_cast<std::size_t>(transition.input)] =
        static_cast<std::uint8_t>(transition.to);
  return table;
}();

}  // namespace

std::span<const RankTransition> rank_transitions() {
  return transitions;
}

std::optional<RankState> next_state(RankState from, RankInput input) {
  const std::uint8_t to = by_state_and_input[static_cast<std::size_t>(from)][static_cast<std::size_t>(input)];
  if (to == refused) return std::nullopt;
  return static_cast<RankState>(to);
}

std::string_view name_of(RankState state) {
  return states[static_cast<std::size_t>(state)].name;
}

std::string_view meaning_of(RankState state) {
  return states[static_cast<std::size_t>(state)].meaning;
}

std::string_view name_of(RankInput input) {
  return inputs[static_cast<std::size_t>(input)].name;
}

std::string_view meaning_of(RankInput input) {
  return inputs[static_cast<std::size_t>(input)].meaning;
}

}  // namespace apenet
