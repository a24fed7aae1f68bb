#include "runtime/recording/recording_survey.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "runtime/ipc/protocol.hpp"

namespace apenet {

using ipc::RecordingEntry;
using ipc::RecordingKind;

namespace {

void note_site(const Recording& recording, std::uint32_t rank, const RecordingEntry& site,
               std::vector<CallSite>& sites) {
  if (site.operation >= recording.files(rank).size() || site.site != sites.size() + 1)
    throw std::runtime_error("the recording of this run refers to files of code that it does not contain");
  sites.push_back({recording.files(rank)[site.operation], site.address, {}});
}

}  // namespace

RecordingSurvey survey_recording(const Recording& recording) {
  RecordingSurvey survey(recording.rank_count());
  std::set<std::int64_t> unrecorded;
  for (std::uint32_t rank = 0; rank < recording.rank_count(); ++rank) {
    // A rank that uses other libraries alone opens no endpoint.
    bool is_closed = false, has_others = false, has_endpoint = false;
    const std::size_t entries = recording.entry_count(rank);
    recording.for_each(rank, [&](const RecordingEntry& entry) {
      if (entry.kind == RecordingKind::unrecorded) {
        has_others = true;
        unrecorded.insert(entry.value);
        return;
      }
      if (entry.kind == RecordingKind::site) {
        note_site(recording, rank, entry, survey.sites[rank]);
        return;
      }
      has_endpoint = true;
      is_closed = entry.kind == RecordingKind::closed;
      // Operations are numbered from 1, and each has its own entry.
      if (entry.peer >= recording.rank_count() || entry.operation > entries)
        throw std::runtime_error(
            "the recording of this run refers to ranks or operations that it does not contain");
      survey.last_operations[rank] = std::max(survey.last_operations[rank], entry.operation);
      switch (entry.kind) {
        case RecordingKind::sent: {
          survey.tags.see(entry);
          ChannelState& state = survey.channels[{entry.peer, rank, survey.tags.of(entry)}];
          ++state.balance;
          state.last_bytes = entry.value;
          state.rail = entry.rail;
          break;
        }
        case RecordingKind::matched:
          survey.tags.see(entry);
          --survey.channels[{rank, entry.peer, survey.tags.of(entry)}].balance;
          break;
        case RecordingKind::put:
        case RecordingKind::got:
          survey.accesses[entry.peer].push_back(
              {rank, entry.kind == RecordingKind::got, entry.value, entry.remote_address, entry.rail});
          ++(entry.kind == RecordingKind::put ? survey.puts : survey.gets);
          break;
        default:
          break;
      }
    });
    if (!is_closed && (has_endpoint || !has_others)) ++survey.unclosed;
  }
  for (const std::int64_t interface : unrecorded) {
    const auto number = static_cast<std::uint64_t>(interface);
    if (number >= ipc::interface_count)
      throw std::runtime_error("the recording of this run refers to libraries that do not exist");
    survey.unrecorded.emplace_back(ipc::interface_names[number]);
  }
  return survey;
}

}  // namespace apenet
