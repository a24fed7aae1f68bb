#include "runtime/recording/goal_writer.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/ipc/mpi_call_table.hpp"
#include "runtime/ipc/program_tags.hpp"
#include "runtime/ipc/protocol.hpp"

namespace apenet {
namespace {

using ipc::RecordingEntry;
using ipc::RecordingKind;

// A message queue of MPI: its messages are matched in the order in which they were sent.
using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // target, source, tag

struct ChannelState {
  std::int64_t balance = 0;  // unmatched sends if positive, unmatched receives if negative
  std::int64_t last_bytes = 0;
  std::uint8_t rail = 0;
};

// A remote access, recorded for its target.
struct Access {
  std::uint32_t source = 0;
  bool is_get = false;
  std::int64_t bytes = 0;
  std::uint64_t address = 0;  // in the target's memory
  std::uint8_t rail = 0;
};

bool is_of_program(const RecordingEntry& message) {
  return message.tagged != 0 && ipc::is_of_program(message.tag);
}

bool starts_message(const RecordingEntry& entry) {
  return ipc::starts_message(static_cast<ipc::MpiCall>(entry.call));
}

// Numbers tags in the order of first use. The tags of remote accesses follow.
class TagNumbers {
 public:
  void see(const RecordingEntry& entry) {
    numbers_.try_emplace({entry.tagged != 0, entry.tag}, static_cast<std::uint32_t>(numbers_.size()));
  }
  [[nodiscard]] std::uint32_t of(const RecordingEntry& entry) const {
    return numbers_.at({entry.tagged != 0, entry.tag});
  }
  [[nodiscard]] std::uint32_t put() const { return static_cast<std::uint32_t>(numbers_.size()); }
  [[nodiscard]] std::uint32_t request() const { return put() + 1; }
  [[nodiscard]] std::uint32_t answer() const { return put() + 2; }

 private:
  std::map<std::pair<bool, std::uint64_t>, std::uint32_t> numbers_;
};

// The output file, with checked writes.
class Output {
 public:
  explicit Output(const std::string& path)
      : path_(path), file_(std::fopen(path.c_str(), "we"), &std::fclose) {
    if (file_ == nullptr) fail();
    std::setvbuf(file_.get(), nullptr, _IOFBF, 1 << 20);
  }
  void put(const char* text) {
    if (std::fputs(text, file_.get()) < 0) fail();
  }
  template <typename... Values>
  void print(const char* format, Values... values) {
    if (std::fprintf(file_.get(), format, values...) < 0) fail();
  }
  void close() {
    if (std::fclose(file_.release()) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const { throw std::system_error(errno, std::generic_category(), path_); }

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

class GoalWriter {
 public:
  GoalWriter(const Recording& recording, const std::string& path, const LinesOfCalls& lines_of_calls)
      : recording_(recording),
        lines_of_calls_(lines_of_calls),
        out_(path),
        accesses_(recording.rank_count()),
        sites_(recording.rank_count()),
        last_operations_(recording.rank_count()) {}

  GoalSummary write(const std::string& heading);

 private:
  struct CallPlace {
    std::uint16_t call = 0;  // 0: not known
    std::uint16_t site = 0;
    std::uint32_t number = 0;  // among the rank's calls of this function, from 1; 0: not known
    bool operator==(const CallPlace&) const = default;
  };
  struct Site {
    std::string file;
    std::uint64_t address = 0;
    std::string line;  // empty: not known
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
  // The messages of a nonblocking collective operation. Those that follow its first ones depend on their
  // ends, and not on what the program or other operations have come to meanwhile.
  struct Collective {
    std::uint32_t last = 0;            // label
    std::vector<std::uint32_t> ended;  // labels that none of them requires
  };
  // The part of an operation in one of them.
  struct Part {
    std::uint32_t tag = 0;        // number
    bool is_nonblocking = false;  // a message of a nonblocking collective operation
    bool continues = false;       // and not begun by the call that starts it
  };
  // The library knows that this operation has ended. The program knows it at the earliest when it has begun
  // more completing calls.
  struct UnseenEnd {
    std::uint32_t label = 0;
    std::uint32_t completing_calls = 0;
  };

  void survey();
  void note_site(std::uint32_t rank, const RecordingEntry& site);
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
  [[nodiscard]] static Part part_of(const RecordingEntry& entry, bool is_of_program, std::uint32_t tag);
  void begin_message(const RecordingEntry& entry, const Part& part, std::uint32_t label, bool is_of_program);
  void depend(std::uint32_t label, const RecordingEntry& entry, const Part& part);
  void require(std::uint32_t label, const std::vector<std::uint32_t>& ended, std::uint32_t before);
  void end_operation(const RecordingEntry& ended);

  const Recording& recording_;
  const LinesOfCalls& lines_of_calls_;
  Output out_;
  GoalSummary summary_;
  TagNumbers tags_;
  std::map<Channel, ChannelState> channels_;
  std::vector<std::vector<Access>> accesses_;   // by target, in rank order of their sources
  std::vector<std::vector<Site>> sites_;        // by rank and number, from 1
  std::vector<std::uint32_t> last_operations_;  // by rank: its highest number

  // State of the rank being written.
  std::vector<Match> matches_;         // by operation
  std::vector<CallPlace> ended_in_;    // by operation: the MPI call that has seen its end
  std::vector<std::uint32_t> labels_;  // by operation: label whose end is the operation's end; 0: not written
  std::vector<bool> is_started_message_;  // by operation: only a later call tells the program of its end
  std::vector<std::uint32_t> ended_;      // labels that have ended since the last operation began
  std::vector<UnseenEnd> unseen_;         // in the order of their ends
  std::map<std::uint32_t, Collective>
      collectives_;                         // by number of the tag; an earlier one may have had the same
  std::vector<Collective*> collective_of_;  // by operation; nullptr: of none
  std::uint32_t rank_ = 0;
  std::uint32_t last_ = 0;  // label of the last operation
  std::uint32_t next_label_ = 1;
  std::int64_t unwritten_ps_ = 0;  // computed time below a nanosecond, not yet written
};

GoalSummary GoalWriter::write(const std::string& heading) {
  survey();
  find_lines();
  out_.print("// %s\nnum_ranks %u\n", heading.c_str(), recording_.rank_count());
  for (std::uint32_t rank = 0; rank < recording_.rank_count(); ++rank) {
    out_.print("\nrank %u {\n", rank);
    write_rank(rank);
    write_passive(rank);
    out_.put("}\n");
  }
  out_.close();
  return summary_;
}

// Collects what must be known about all ranks before the first is written.
void GoalWriter::survey() {
  std::set<std::int64_t> unrecorded;
  for (std::uint32_t rank = 0; rank < recording_.rank_count(); ++rank) {
    // A rank that uses other libraries alone opens no endpoint.
    bool is_closed = false, has_others = false, has_endpoint = false;
    const std::size_t entries = recording_.entry_count(rank);
    recording_.for_each(rank, [&](const RecordingEntry& entry) {
      if (entry.kind == RecordingKind::unrecorded) {
        has_others = true;
        unrecorded.insert(entry.value);
        return;
      }
      if (entry.kind == RecordingKind::site) {
        note_site(rank, entry);
        return;
      }
      has_endpoint = true;
      is_closed = entry.kind == RecordingKind::closed;
      // Operations are numbered from 1, and each has its own entry.
      if (entry.peer >= recording_.rank_count() || entry.operation > entries)
        throw std::runtime_error(
            "the recording of this run refers to ranks or operations that it does not contain");
      last_operations_[rank] = std::max(last_operations_[rank], entry.operation);
      switch (entry.kind) {
        case RecordingKind::sent: {
          tags_.see(entry);
          ChannelState& state = channels_[{entry.peer, rank, tags_.of(entry)}];
          ++state.balance;
          state.last_bytes = entry.value;
          state.rail = entry.rail;
          break;
        }
        case RecordingKind::matched:
          tags_.see(entry);
          --channels_[{rank, entry.peer, tags_.of(entry)}].balance;
          break;
        case RecordingKind::put:
        case RecordingKind::got:
          accesses_[entry.peer].push_back(
              {rank, entry.kind == RecordingKind::got, entry.value, entry.remote_address, entry.rail});
          ++(entry.kind == RecordingKind::put ? summary_.puts : summary_.gets);
          break;
        default:
          break;
      }
    });
    if (!is_closed && (has_endpoint || !has_others)) ++summary_.unclosed;
  }
  for (const std::int64_t interface : unrecorded) {
    const auto number = static_cast<std::uint64_t>(interface);
    if (number >= ipc::interface_count)
      throw std::runtime_error("the recording of this run refers to libraries that do not exist");
    summary_.unrecorded.emplace_back(ipc::interface_names[number]);
  }
}

void GoalWriter::note_site(std::uint32_t rank, const RecordingEntry& site) {
  if (site.operation >= recording_.files(rank).size() || site.site != sites_[rank].size() + 1)
    throw std::runtime_error("the recording of this run refers to files of code that it does not contain");
  sites_[rank].push_back({recording_.files(rank)[site.operation], site.address, {}});
}

// Ranks mostly run the same files.
void GoalWriter::find_lines() {
  std::map<std::string, std::map<std::uint64_t, std::string>> lines;
  for (const std::vector<Site>& of_rank : sites_) {
    for (const Site& site : of_rank) lines[site.file][site.address];
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
  for (std::vector<Site>& of_rank : sites_) {
    for (Site& site : of_rank) site.line = lines[site.file][site.address];
  }
}

void GoalWriter::write_rank(std::uint32_t rank) {
  rank_ = rank;
  ended_.clear();
  unseen_.clear();
  collectives_.clear();
  last_ = 0;
  next_label_ = 1;
  unwritten_ps_ = 0;
  const std::size_t operations = std::size_t{last_operations_[rank]} + 1;
  matches_.assign(operations, {});
  ended_in_.assign(operations, {});
  recording_.for_each(rank, [this](const RecordingEntry& entry) {
    if (entry.kind == RecordingKind::ended) ended_in_[entry.operation] = place_of(entry);
    if (entry.kind == RecordingKind::matched) {
      matches_[entry.operation] = {.bytes = entry.value,
                                   .address = entry.address,
                                   .source = entry.peer,
                                   .tag = tags_.of(entry),
                                   .rail = entry.rail,
                                   .in_gpu = entry.in_gpu,
                                   .is_matched = true,
                                   .is_tagged = entry.tagged != 0,
                                   .is_of_program = is_of_program(entry)};
    }
  });
  labels_.assign(operations, 0);
  is_started_message_.assign(operations, false);
  collective_of_.assign(operations, nullptr);
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
        end_operation(entry);
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
  if (place.site != 0 && place.site <= sites_[rank_].size()) {
    const std::string& line = sites_[rank_][place.site - 1U].line;
    if (!line.empty()) out_.print("@%s", line.c_str());
  }
  if (place.number != 0) out_.print("#%u", place.number);
}

void GoalWriter::end_operation(const RecordingEntry& ended) {
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

GoalWriter::Part GoalWriter::part_of(const RecordingEntry& entry, bool is_of_program, std::uint32_t tag) {
  if (is_of_program || entry.call == 0) return {};
  const auto call = static_cast<ipc::MpiCall>(entry.call);
  const bool continues = ipc::only_continues_collectives(call);
  return {tag, continues || ipc::starts_collective(call) || ipc::starts_message(call), continues};
}

// A send or receive of the program, or a step of the library.
void GoalWriter::begin_message(const RecordingEntry& entry, const Part& part, std::uint32_t label,
                               bool is_of_program) {
  is_started_message_[entry.operation] = part.is_nonblocking || (is_of_program && starts_message(entry));
  if (part.is_nonblocking) collective_of_[entry.operation] = &collectives_[part.tag];
  depend(label, entry, part);
}

// Writes that the operation requires these, and that it starts after the one before it (0: none).
void GoalWriter::require(std::uint32_t label, const std::vector<std::uint32_t>& ended, std::uint32_t before) {
  for (const std::uint32_t one : ended) out_.print("l%u requires l%u\n", label, one);
  const bool follows = before == 0 || std::find(ended.begin(), ended.end(), before) != ended.end();
  if (!follows) out_.print("l%u irequires l%u\n", label, before);
}

// Writes the dependencies of an operation, and makes it the last one. A send, a receive or computation begins
// because the program has come to it. A remote access may be the library's, which knows more.
void GoalWriter::depend(std::uint32_t label, const RecordingEntry& entry, const Part& part) {
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

void GoalWriter::begin_entry(const RecordingEntry& entry) {
  const auto bytes = static_cast<long long>(entry.value);
  const std::uint32_t first = next_label_++;
  labels_[entry.operation] = first;
  if (entry.kind == RecordingKind::got) {
    out_.print("l%u: send 0b to %u tag %u", first, entry.peer, tags_.request());
    end_line({.rail = entry.rail,
              .operation = entry.operation,
              .call = entry.call,
              .site = entry.site,
              .call_number = entry.call_number});
    depend(first, entry, Part{});
    const std::uint32_t answer = next_label_++;
    out_.print("l%u: recv %lldb from %u tag %u", answer, bytes, entry.peer, tags_.answer());
    end_line(entry);
    out_.print("l%u requires l%u\n", answer, first);
    labels_[entry.operation] = answer;
    return;
  }
  const std::uint32_t tag = entry.kind == RecordingKind::put ? tags_.put() : tags_.of(entry);
  out_.print("l%u: send %lldb to %u tag %u", first, bytes, entry.peer, tag);
  end_line(entry);
  if (entry.kind == RecordingKind::put || entry.tagged == 0) return depend(first, entry, Part{});
  begin_message(entry, part_of(entry, is_of_program(entry), tag), first, is_of_program(entry));
}

void GoalWriter::receive(std::uint32_t rank, const RecordingEntry& entry) {
  const Match& message = matches_[entry.operation];
  if (!message.is_matched) return;  // cancelled or never matched
  ChannelState& state = channels_.at({rank, message.source, message.tag});
  if (state.balance < 0) {
    // Messages of a channel keep their order, so a receive without a send belongs to a message sent before
    // virtual time began, and comes first.
    ++state.balance;
    return;
  }
  const std::uint32_t operation = next_label_++;
  labels_[entry.operation] = operation;
  out_.print("l%u: recv %lldb from %u tag %u", operation, static_cast<long long>(message.bytes),
             message.source, message.tag);
  end_line({.in_gpu = message.in_gpu,
            .rail = message.rail,
            .operation = entry.operation,
            .call = entry.call,
            .site = entry.site,
            .address = message.address,
            .call_number = entry.call_number});
  if (!message.is_tagged) return depend(operation, entry, Part{});
  begin_message(entry, part_of(entry, message.is_of_program, message.tag), operation, message.is_of_program);
}

void GoalWriter::compute(const RecordingEntry& entry) {
  constexpr std::int64_t ps_per_ns = 1000;
  unwritten_ps_ += entry.value;
  const std::int64_t ns = unwritten_ps_ / ps_per_ns;
  if (ns == 0) return;
  unwritten_ps_ -= ns * ps_per_ns;
  const std::uint32_t operation = next_label_++;
  out_.print("l%u: calc %lld\n", operation, static_cast<long long>(ns));
  depend(operation, entry, Part{});
  ended_.push_back(operation);
}

// Writes the remote accesses to a rank, on a CPU that its program does not use, and a receive for each
// message that the program did not receive.
void GoalWriter::write_passive(std::uint32_t rank) {
  for (const Access& access : accesses_[rank]) {
    const RecordingEntry buffer{.rail = access.rail, .address = access.address};
    const auto bytes = static_cast<long long>(access.bytes);
    const std::uint32_t first = next_label_++;
    if (!access.is_get) {
      out_.print("l%u: recv %lldb from %u tag %u cpu 1", first, bytes, access.source, tags_.put());
      end_line(buffer);
      continue;
    }
    const std::uint32_t answer = next_label_++;
    out_.print("l%u: recv 0b from %u tag %u cpu 1", first, access.source, tags_.request());
    end_line({.rail = access.rail});
    out_.print("l%u: send %lldb to %u tag %u cpu 1", answer, bytes, access.source, tags_.answer());
    end_line(buffer);
    out_.print("l%u requires l%u\n", answer, first);
  }
  for (auto at = channels_.lower_bound({rank, 0, 0}); at != channels_.end() && std::get<0>(at->first) == rank;
       ++at) {
    for (; at->second.balance > 0; --at->second.balance) {
      ++summary_.unreceived;
      const std::uint32_t label = next_label_++;
      out_.print("l%u: recv %lldb from %u tag %u", label, static_cast<long long>(at->second.last_bytes),
                 std::get<1>(at->first), std::get<2>(at->first));
      end_line({.rail = at->second.rail});
      // Posted behind the others, which have matched the messages before.
      if (last_ != 0) out_.print("l%u irequires l%u\n", label, last_);
    }
  }
}

}  // namespace

GoalSummary write_goal(const Recording& recording, const std::string& heading, const std::string& path,
                       const LinesOfCalls& lines_of_calls) {
  return GoalWriter(recording, path, lines_of_calls).write(heading);
}

}  // namespace apenet
