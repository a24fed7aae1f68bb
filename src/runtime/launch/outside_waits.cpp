#include "runtime/launch/outside_waits.hpp"

#include <array>
#include <map>
#include <string>

#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

constexpr auto kinds = static_cast<std::uint32_t>(ipc::OutsideCause::count);

constexpr std::array<std::string_view, kinds> names{"",
                                                    "a child process",
                                                    "another process",
                                                    "a connection that was refused",
                                                    "a lock",
                                                    "data in a pipe, socket or file",
                                                    "a file",
                                                    "another answer of a program that it starts",
                                                    "shared memory, a semaphore or a queue",
                                                    "another answer of a system call",
                                                    ""};

// Kind 0 is none, and the last one no wait.
constexpr std::uint32_t all_kinds = (1U << kinds) - 2 - ipc::bit_of(ipc::OutsideCause::signal);

// call: the number of the system call that OutsideCause::call stands for.
std::string list_of(std::uint32_t set, std::uint32_t call) {
  std::string text;
  for (std::uint32_t kind = 1; kind < kinds; ++kind) {
    if ((set >> kind & 1U) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(names[kind]);
    if (kind == static_cast<std::uint32_t>(ipc::OutsideCause::call))
      text += " (number " + std::to_string(call) + ")";
  }
  return text;
}

}  // namespace

std::string_view waits_outside_for(const RankTable& ranks, std::uint32_t rank) {
  const auto kind = static_cast<std::uint32_t>(ranks.outside(rank).now.load());
  return kind < kinds ? names[kind] : std::string_view{};
}

std::string gave_up_outside(const RankTable& ranks, std::uint32_t rank) {
  const ipc::OutsideNote& note = ranks.outside(rank);
  return list_of(note.given_up & all_kinds, note.call);
}

std::vector<std::string> outside_warnings(const RankTable& table) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> waited;  // by what they waited for
  std::map<std::uint32_t, std::vector<std::uint32_t>> changed;
  std::map<std::uint32_t, std::vector<std::uint32_t>> given_up;
  const auto list_for = [&table](std::uint32_t set, const std::vector<std::uint32_t>& ranks) {
    return list_of(set, table.outside(ranks.front()).call);
  };
  std::vector<std::uint32_t> interrupted;
  for (std::uint32_t rank = 0; rank < table.size(); ++rank) {
    const ipc::OutsideNote& note = table.outside(rank);
    waited[note.waited & all_kinds].push_back(rank);
    changed[note.changed & all_kinds & ~note.waited].push_back(rank);
    given_up[note.given_up & all_kinds].push_back(rank);
    if ((note.waited & ipc::bit_of(ipc::OutsideCause::signal)) != 0) interrupted.push_back(rank);
  }
  waited.erase(0);
  changed.erase(0);
  given_up.erase(0);
  std::vector<std::string> lines;
  for (const auto& [set, ranks] : waited)
    lines.push_back(name_ranks(ranks) + " slept in real time, waiting for " + list_for(set, ranks) +
                    ": the times of this run may not repeat");
  for (const auto& [set, ranks] : changed)
    lines.push_back(name_ranks(ranks) + " checked " + list_for(set, ranks) +
                    " until it changed, at a time of the host: the times of this run may not repeat");
  for (const auto& [set, ranks] : given_up)
    lines.push_back(name_ranks(ranks) + " slept in real time for as long as the stall timeout, waiting for " +
                    list_for(set, ranks) +
                    ", and nothing changed: further sleeps took no real time; --stall-timeout "
                    "allows for more");
  if (!interrupted.empty())
    lines.push_back("a signal from outside the ranks has ended a sleep of " + name_ranks(interrupted) +
                    ": the times of this run may not repeat");
  return lines;
}

}  // namespace apenet
