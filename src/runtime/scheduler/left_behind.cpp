#include "runtime/scheduler/left_behind.hpp"

#include <algorithm>

#include "runtime/ipc/program_tags.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

constexpr std::size_t most_windows = 4;  // named in the report

struct LeftWindow {
  ObjectSnapshot window;
  std::string place;
  bool is_mpich = false;
  std::vector<std::uint32_t> ranks;
};

std::vector<LeftWindow> left_windows(const std::vector<RankSnapshot>& ranks, const LineOfCode& line_of) {
  std::vector<LeftWindow> left;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const FinaliseSnapshot& finalise = ranks[rank].finalise;
    for (const ObjectSnapshot& object : ranks[rank].objects) {
      if (!finalise.is_called || object.type != ipc::ObjectType::window || object.is_freed) continue;
      auto same = std::find_if(left.begin(), left.end(),
                               [&](const LeftWindow& one) { return one.window.is(object); });
      if (same == left.end()) {
        same = left.insert(left.end(), {object, {}, finalise.is_mpich, {}});
        if (left.size() <= most_windows && object.caller > finalise.loaded_at && !finalise.file.empty())
          same->place = line_of(finalise.file, object.caller - finalise.loaded_at);
      }
      same->ranks.push_back(rank);
    }
  }
  return left;
}

std::string text_of(const LeftWindow& left) {
  const std::string maker(name_of(left.window.maker));
  const std::string name = left.window.name.empty() ? "a window" : "window '" + left.window.name + "'";
  return name_ranks(left.ranks) + " had not freed " + name + " of " + maker +
         (left.place.empty() ? "" : " (" + left.place + ")") + " when calling MPI_Finalize" +
         (left.is_mpich ? ", which MPICH may report as 'OFI call fabricclose failed'" : "");
}

// The tag tells the communicator only if that is MPI_COMM_WORLD, or the rank has made only one.
std::string communicator_of(const RankSnapshot& rank, std::uint64_t tag) {
  if (ipc::is_in_world(tag, rank.finalise.is_mpich)) return "MPI_COMM_WORLD";
  const auto is_other = [](const ObjectSnapshot& object) {
    return object.type == ipc::ObjectType::communicator;
  };
  const auto other = std::find_if(rank.objects.begin(), rank.objects.end(), is_other);
  if (std::count_if(rank.objects.begin(), rank.objects.end(), is_other) != 1) return "another communicator";
  return other->name.empty() ? "a communicator of " + std::string(name_of(other->maker))
                             : "communicator '" + other->name + "'";
}

// `of`: whose messages, with a space before. `rest`: what is known of the first one besides its ranks.
std::string text_of(const UnreceivedMessages& unreceived, const std::string& of, const std::string& rest) {
  std::uint64_t count = 0;
  for (const auto& [rank, found] : unreceived.found()) count += found.count;
  const auto& [target, first] = *unreceived.found().begin();
  return std::to_string(count) + (count == 1 ? " message" : " messages") + of +
         (count == 1 ? " was" : " were") + " never received" + (count == 1 ? ": from" : "; the first: from") +
         " rank " + std::to_string(first.source) + " to rank " + std::to_string(target) + rest;
}

std::string text_of(const std::vector<RankSnapshot>& ranks, const UnreceivedMessages& unreceived) {
  const auto& [target, first] = *unreceived.found().begin();
  return text_of(unreceived, "",
                 ", tag " + std::to_string(ipc::program_tag(first.tag)) + ", on " +
                     communicator_of(ranks[target], first.tag));
}

void add(UnreceivedMessages& unreceived, std::uint32_t rank, const ipc::UnreceivedNote& note) {
  if (note.count > 0)
    unreceived.add(rank,
                   {.count = note.count, .source = static_cast<std::uint32_t>(note.source), .tag = note.tag});
}

}  // namespace

std::vector<std::string> left_behind(const std::vector<RankSnapshot>& ranks,
                                     const UnreceivedMessages& untaken, const LineOfCode& line_of) {
  std::vector<std::string> lines;
  const std::vector<LeftWindow> windows = left_windows(ranks, line_of);
  for (std::size_t i = 0; i < windows.size() && i < most_windows; ++i) lines.push_back(text_of(windows[i]));
  if (windows.size() > most_windows)
    lines.push_back(std::to_string(windows.size() - most_windows) + " more windows were not freed");
  UnreceivedMessages unreceived;
  UnreceivedMessages of_collectives;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const ipc::WaitNote& note = ranks[rank].provider;
    if (!ranks[rank].finalise.is_called) continue;
    add(unreceived, rank, note.unreceived);
    add(of_collectives, rank, note.unreceived_of_collectives);
    const auto found = untaken.found().find(rank);
    if (found != untaken.found().end()) unreceived.add(rank, found->second);
  }
  if (!unreceived.found().empty()) lines.push_back(text_of(ranks, unreceived));
  if (!of_collectives.found().empty())
    lines.push_back(text_of(of_collectives, " of MPI's collective calls",
                            ": the ranks have not called the same collectives in the same order"));
  return lines;
}

}  // namespace apenet
