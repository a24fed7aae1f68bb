#include "runtime/recording/goal_dependencies.hpp"

#include <algorithm>
#include <utility>

#include "runtime/ipc/mpi_call_table.hpp"

namespace apenet {

using ipc::RecordingEntry;
using ipc::RecordingKind;

void GoalDependencies::begin_rank(std::size_t operations) {
  labels_.assign(operations, 0);
  is_started_message_.assign(operations, false);
  ended_.clear();
  unseen_.clear();
  collectives_.clear();
  collective_of_.assign(operations, nullptr);
  last_ = 0;
}

GoalDependencies::Part GoalDependencies::part_of(const RecordingEntry& entry, std::uint32_t tag,
                                                 bool is_of_program) {
  if (is_of_program || entry.call == 0) return {};
  const auto call = static_cast<ipc::MpiCall>(entry.call);
  const bool continues = ipc::only_continues_collectives(call);
  return {tag, continues || ipc::starts_collective(call) || ipc::starts_message(call), continues};
}

void GoalDependencies::begin_message(std::uint32_t label, const RecordingEntry& entry, std::uint32_t tag,
                                     bool is_of_program) {
  const Part part = part_of(entry, tag, is_of_program);
  is_started_message_[entry.operation] =
      part.is_nonblocking || (is_of_program && ipc::starts_message(static_cast<ipc::MpiCall>(entry.call)));
  if (part.is_nonblocking) collective_of_[entry.operation] = &collectives_[part.tag];
  depend(label, entry, part);
}

// Its end is that of the line, which comes before all that the rank begins later.
void GoalDependencies::begin_computation(std::uint32_t label, const RecordingEntry& entry) {
  depend(label, entry, Part{});
  ended_.push_back(label);
}

void GoalDependencies::end_operation(const RecordingEntry& ended) {
  const std::uint32_t label = labels_[ended.operation];
  if (label == 0) return;
  if (Collective* collective = collective_of_[ended.operation]) collective->ended.push_back(label);
  const bool is_seen = !is_started_message_[ended.operation] || ended.call == 0 ||
                       ipc::completes_requests(static_cast<ipc::MpiCall>(ended.call));
  if (is_seen)
    ended_.push_back(label);
  else
    unseen_.push_back({label, ended.completing_calls});
}

// Writes that the operation requires these, and that it starts after the one before it (0: none).
void GoalDependencies::require(std::uint32_t label, const std::vector<std::uint32_t>& ended,
                               std::uint32_t before) {
  for (const std::uint32_t one : ended) out_.print("l%u requires l%u\n", label, one);
  const bool follows = before == 0 || std::find(ended.begin(), ended.end(), before) != ended.end();
  if (!follows) out_.print("l%u irequires l%u\n", label, before);
}

// Makes the operation the last one. A send, a receive or computation begins because the program has come to
// it. A remote access may be the library's, which knows more.
void GoalDependencies::depend(std::uint32_t label, const RecordingEntry& entry, const Part& part) {
  std::vector<std::uint32_t> needed;
  if (part.is_nonblocking) {
    Collective& collective = collectives_[part.tag];
    needed.swap(collective.ended);
    const std::uint32_t last = std::exchange(collective.last, label);
    if (part.continues && last != 0) return require(label, needed, last);
  }
  const bool knows_all =
      entry.call == 0 || entry.kind == RecordingKind::put || entry.kind == RecordingKind::got;
  const auto still_unseen = std::find_if(unseen_.begin(), unseen_.end(), [&](const UnseenEnd& end) {
    return !knows_all && end.completing_calls >= entry.completing_calls;
  });
  for (auto seen = unseen_.begin(); seen != still_unseen; ++seen) ended_.push_back(seen->label);
  unseen_.erase(unseen_.begin(), still_unseen);
  for (const std::uint32_t one : needed) {
    if (std::find(ended_.begin(), ended_.end(), one) == ended_.end()) ended_.push_back(one);
  }
  require(label, ended_, last_);
  ended_.clear();
  last_ = label;
}

}  // namespace apenet
