#include "runtime/recording/goal_writer.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <vector>

#include "runtime/ipc/mpi_call_table.hpp"
#include "runtime/ipc/program_tags.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/recording/goal_dependencies.hpp"
#include "runtime/recording/goal_output.hpp"
#include "runtime/recording/recording_survey.hpp"

namespace apenet {
namespace {

using ipc::RecordingEntry;
using ipc::RecordingKind;

bool is_of_program(const RecordingEntry& message) {
  return message.tagged != 0 && ipc::is_of_program(message.tag);
}

class GoalWriter {
 public:
  GoalWriter(const Recording& recording, const std::string& path, const LinesOfCalls& lines_of_calls)
      : recording_(recording),
        lines_of_calls_(lines_of_calls),
        out_(path),
        survey_(survey_recording(recording)),
        dependencies_(out_) {}

  GoalSummary write(const std::string& heading);

 private:
  struct CallPlace {
    std::uint16_t call = 0;  // 0: not known
    std::uint16_t site = 0;
    std::uint32_t number = 0;  // among the rank's calls of this function, from 1; 0: not known
    bool operator==(const CallPlace&) const = default;
  };
  // The message that a receive matched.
  struct Match {
    std::int64_t bytes = 0;
    std::uint64_t address = 0;  // where the buffer begins
    std::uint32_t source = 0;
    std::uint32_t tag = 0;
    std::uint8_t rail = 0;
    std::uint8_t in_gpu = 0;
    bool is_matched = false;
    bool is_tagged = false;
    bool is_of_program = false;  // not one of the MPI library's own
  };

  void find_lines();
  void write_rank(std::uint32_t rank);
  void begin_entry(const RecordingEntry& entry);
  void receive(std::uint32_t rank, const RecordingEntry& entry);
  void compute(const RecordingEntry& entry);
  void write_passive(std::uint32_t rank);
  void end_line(const RecordingEntry& entry);
  static CallPlace place_of(const RecordingEntry& entry) {
    return {entry.call, entry.site, entry.call_number};
  }
  void write_calls(const RecordingEntry& entry);
  void write_call(const CallPlace& place);

  const Recording& recording_;
  const LinesOfCalls& lines_of_calls_;
  GoalOutput out_;
  RecordingSurvey survey_;
  GoalDependencies dependencies_;
  std::uint64_t unreceived_ = 0;

  // State of the rank being written.
  std::vector<Match> matches_;       // by operation
  std::vector<CallPlace> ended_in_;  // by operation: the MPI call that has seen its end
  std::uint32_t rank_ = 0;
  std::uint32_t next_label_ = 1;
  std::int64_t unwritten_ps_ = 0;  // computed time below a nanosecond, not yet written
};

GoalSummary GoalWriter::write(const std::string& heading) {
  find_lines();
  out_.print("// %s\nnum_ranks %u\n", heading.c_str(), recording_.rank_count());
  for (std::uint32_t rank = 0; rank < recording_.rank_count(); ++rank) {
    out_.print("\nrank %u {\n", rank);
    write_rank(rank);
    write_passive(rank);
    out_.put("}\n");
  }
  out_.close();
  return {.puts = survey_.puts,
          .gets = survey_.gets,
          .unreceived = unreceived_,
          .unclosed = survey_.unclosed,
          .unrecorded = survey_.unrecorded};
}

// Ranks mostly run the same files.
void GoalWriter::find_lines() {
  std::map<std::string, std::map<std::uint64_t, std::string>> lines;
  for (const std::vector<CallSite>& of_rank : survey_.sites) {
    for (const CallSite& site : of_rank) lines[site.file][site.address];
  }
  for (auto& [file, by_address] : lines) {
    std::vector<std::uint64_t> behind;
    for (const auto& [address, line] : by_address) behind.push_back(address);
    const std::vector<std::string> found = lines_of_calls_(file, behind);
    for (std::size_t i = 0; i < behind.size(); ++i) {
      std::string& line = by_address[behind[i]] = found[i];
      // The name is one word of the trace.
      std::replace_if(
          line.begin(), line.end(), [](unsigned char letter) { return std::isgraph(letter) == 0; }, '?');
    }
  }
  for (std::vector<CallSite>& of_rank : survey_.sites) {
    for (CallSite& site : of_rank) site.line = lines[site.file][site.address];
  }
}

void GoalWriter::write_rank(std::uint32_t rank) {
  rank_ = rank;
  next_label_ = 1;
  unwritten_ps_ = 0;
  const std::size_t operations = std::size_t{survey_.last_operations[rank]} + 1;
  matches_.assign(operations, {});
  ended_in_.assign(operations, {});
  recording_.for_each(rank, [this](const RecordingEntry& entry) {
    if (entry.kind == RecordingKind::ended) ended_in_[entry.operation] = place_of(entry);
    if (entry.kind == RecordingKind::matched) {
      matches_[entry.operation] = {.bytes = entry.value,
                                   .address = entry.address,
                                   .source = entry.peer,
                                   .tag = survey_.tags.of(entry),
                                   .rail = entry.rail,
                                   .in_gpu = entry.in_gpu,
                                   .is_matched = true,
                                   .is_tagged = entry.tagged != 0,
                                   .is_of_program = is_of_program(entry)};
    }
  });
  dependencies_.begin_rank(operations);
  recording_.for_each(rank, [this, rank](const RecordingEntry& entry) {
    switch (entry.kind) {
      case RecordingKind::computed:
        compute(entry);
        break;
      case RecordingKind::received:
        receive(rank, entry);
        break;
      case RecordingKind::sent:
      case RecordingKind::put:
      case RecordingKind::got:
        begin_entry(entry);
        break;
      case RecordingKind::ended:
        dependencies_.end_operation(entry);
        break;
      case RecordingKind::matched:
      case RecordingKind::closed:
      case RecordingKind::unrecorded:
      case RecordingKind::site:
        break;
    }
  });
}

// Ends the line of a send or receive with its rail, and its buffer in a comment.
void GoalWriter::end_line(const RecordingEntry& entry) {
  if (entry.rail != 0) out_.print(" nic %u", unsigned{entry.rail});
  // Other readers of the format skip the comment.
  if (entry.address != 0 || entry.call != 0) out_.put(" //");
  if (entry.address != 0) {
    out_.print(" @0x%llx%s", static_cast<unsigned long long>(entry.address), entry.in_gpu != 0 ? " gpu" : "");
  }
  if (entry.call != 0) write_calls(entry);
  out_.put("\n");
}

// The MPI call that began the operation, and the one that has seen its end if that is another.
void GoalWriter::write_calls(const RecordingEntry& entry) {
  const CallPlace first = place_of(entry);
  const CallPlace last = ended_in_[entry.operation];
  out_.put(" in");
  write_call(first);
  if (last.call != 0 && last != first) write_call(last);
}

void GoalWriter::write_call(const CallPlace& place) {
  out_.print(" %s", ipc::entry_of(static_cast<ipc::MpiCall>(place.call)).name.data());
  if (place.site != 0 && place.site <= survey_.sites[rank_].size()) {
    const std::string& line = survey_.sites[rank_][place.site - 1U].line;
    if (!line.empty()) out_.print("@%s", line.c_str());
  }
  if (place.number != 0) out_.print("#%u", place.number);
}

void GoalWriter::begin_entry(const RecordingEntry& entry) {
  const auto bytes = static_cast<long long>(entry.value);
  const std::uint32_t first = next_label_++;
  dependencies_.set_label(entry.operation, first);
  if (entry.kind == RecordingKind::got) {
    out_.print("l%u: send 0b to %u tag %u", first, entry.peer, survey_.tags.request());
    end_line({.rail = entry.rail,
              .operation = entry.operation,
              .call = entry.call,
              .site = entry.site,
              .call_number = entry.call_number});
    dependencies_.begin(first, entry);
    const std::uint32_t answer = next_label_++;
    out_.print("l%u: recv %lldb from %u tag %u", answer, bytes, entry.peer, survey_.tags.answer());
    end_line(entry);
    out_.print("l%u requires l%u\n", answer, first);
    dependencies_.set_label(entry.operation, answer);
    return;
  }
  const std::uint32_t tag = entry.kind == RecordingKind::put ? survey_.tags.put() : survey_.tags.of(entry);
  out_.print("l%u: send %lldb to %u tag %u", first, bytes, entry.peer, tag);
  end_line(entry);
  if (entry.kind == RecordingKind::put || entry.tagged == 0) return dependencies_.begin(first, entry);
  dependencies_.begin_message(first, entry, tag, is_of_program(entry));
}

void GoalWriter::receive(std::uint32_t rank, const RecordingEntry& entry) {
  const Match& message = matches_[entry.operation];
  if (!message.is_matched) return;  // cancelled or never matched
  ChannelState& state = survey_.channels.at({rank, message.source, message.tag});
  if (state.balance < 0) {
    // Messages of a channel keep their order, so a receive without a send belongs to a message sent before
    // virtual time began, and comes first.
    ++state.balance;
    return;
  }
  const std::uint32_t operation = next_label_++;
  dependencies_.set_label(entry.operation, operation);
  out_.print("l%u: recv %lldb from %u tag %u", operation, static_cast<long long>(message.bytes),
             message.source, message.tag);
  end_line({.in_gpu = message.in_gpu,
            .rail = message.rail,
            .operation = entry.operation,
            .call = entry.call,
            .site = entry.site,
            .address = message.address,
            .call_number = entry.call_number});
  if (!message.is_tagged) return dependencies_.begin(operation, entry);
  dependencies_.begin_message(operation, entry, message.tag, message.is_of_program);
}

void GoalWriter::compute(const RecordingEntry& entry) {
  constexpr std::int64_t ps_per_ns = 1000;
  unwritten_ps_ += entry.value;
  const std::int64_t ns = unwritten_ps_ / ps_per_ns;
  if (ns == 0) return;
  unwritten_ps_ -= ns * ps_per_ns;
  const std::uint32_t operation = next_label_++;
  out_.print("l%u: calc %lld\n", operation, static_cast<long long>(ns));
  dependencies_.begin_computation(operation, entry);
}

// Writes the remote accesses to a rank, on a CPU that its program does not use, and a receive for each
// message that the program did not receive.
void GoalWriter::write_passive(std::uint32_t rank) {
  for (const Access& access : survey_.accesses[rank]) {
    const RecordingEntry buffer{.rail = access.rail, .address = access.address};
    const auto bytes = static_cast<long long>(access.bytes);
    const std::uint32_t first = next_label_++;
    if (!access.is_get) {
      out_.print("l%u: recv %lldb from %u tag %u cpu 1", first, bytes, access.source, survey_.tags.put());
      end_line(buffer);
      continue;
    }
    const std::uint32_t answer = next_label_++;
    out_.print("l%u: recv 0b from %u tag %u cpu 1", first, access.source, survey_.tags.request());
    end_line({.rail = access.rail});
    out_.print("l%u: send %lldb to %u tag %u cpu 1", answer, bytes, access.source, survey_.tags.answer());
    end_line(buffer);
    out_.print("l%u requires l%u\n", answer, first);
  }
  for (auto at = survey_.channels.lower_bound({rank, 0, 0});
       at != survey_.channels.end() && std::get<0>(at->first) == rank; ++at) {
    for (; at->second.balance > 0; --at->second.balance) {
      ++unreceived_;
      const std::uint32_t label = next_label_++;
      out_.print("l%u: recv %lldb from %u tag %u", label, static_cast<long long>(at->second.last_bytes),
                 std::get<1>(at->first), std::get<2>(at->first));
      end_line({.rail = at->second.rail});
      // Posted behind the others, which have matched the messages before.
      if (dependencies_.last() != 0) out_.print("l%u irequires l%u\n", label, dependencies_.last());
    }
  }
}

}  // namespace

GoalSummary write_goal(const Recording& recording, const std::string& heading, const std::string& path,
                       const LinesOfCalls& lines_of_calls) {
  return GoalWriter(recording, path, lines_of_calls).write(heading);
}

}  // namespace apenet
