#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "kernel/interruption.hpp"
#include "kernel/refuse.hpp"
#include "runtime/scripted/goal.hpp"
#include "runtime/scripted/goal_labels.hpp"
#include "runtime/scripted/goal_scanner.hpp"
#include "runtime/scripted/message_passing.hpp"

namespace apenet {

namespace {

constexpr std::int64_t most_ranks = std::int64_t{1} << 22;  // processes of a machine
constexpr std::int64_t most_bytes = std::int64_t{1} << 40;  // largest message
constexpr std::int64_t most_ns = 1'000'000'000'000'000;     // 11 days, of a calculation
constexpr std::int64_t most_tag = 0xfffffffe;               // the next value is any_tag
constexpr std::int64_t most_cpus = 256;
constexpr std::size_t most_calls = 0xffff;
constexpr std::uint32_t most_operations = GoalRank::on_start - 1;
constexpr std::uint64_t statements_between_checks = 4096;

class GoalParser {
 public:
  // have_read: called every few megabytes with the position reached, so that the caller may release what lies
  // before it. The parser reads labels of the current rank again.
  GoalParser(std::string_view text, const std::string& file,
             std::function<void(const char* position)> have_read)
      : scan_(text, file), have_read_(std::move(have_read)), reported_(text.data()) {
    schedule_.file = file;
  }

  GoalSchedule parse();

 private:
  // "later requires earlier": the numbers of the two labels.
  struct Dependency {
    std::uint32_t later;
    std::uint32_t earlier;
    std::uint32_t line;
    bool on_start;
  };

  void tell_position();
  void parse_rank();
  void parse_statement();
  void parse_operation(std::string_view word);
  void parse_message(GoalOperation& operation, bool is_send);
  void parse_attributes(GoalOperation& operation);
  [[nodiscard]] std::uint16_t number_of_call(std::string_view name);
  void define(std::string_view label, std::uint32_t line);
  void end_statement();
  void finish_rank();
  void link();
  void require_acyclic();
  [[noreturn]] void refuse_cycle(const std::vector<std::uint32_t>& waiting);
  [[nodiscard]] std::uint32_t operation_of(std::uint32_t label, std::uint32_t line);

  GoalScanner scan_;
  std::function<void(const char*)> have_read_;
  const char* reported_;
  GoalSchedule schedule_;
  std::map<std::string, std::uint16_t, std::less<>> calls_;  // indices in schedule_.calls
  GoalRank* rank_ = nullptr;
  std::uint64_t statements_ = 0;
  std::vector<bool> is_described_;
  GoalLabels labels_;
  std::vector<Dependency> dependencies_;
};

GoalSchedule GoalParser::parse() {
  scan_.skip_lines();
  if (scan_.take_name() != "num_ranks") {
    throw std::invalid_argument(schedule_.file + ":" + std::to_string(scan_.line()) +
                                " = the first word: expected num_ranks");
  }
  const std::int64_t count = scan_.take_number("the number of ranks", 1, most_ranks);
  schedule_.ranks.resize(static_cast<std::size_t>(count));
  is_described_.resize(static_cast<std::size_t>(count));
  std::int64_t described = 0;
  for (scan_.skip_lines(); !scan_.at_end(); scan_.skip_lines()) {
    parse_rank();
    ++described;
  }
  if (described < count) {
    scan_.refuse(std::to_string(count) + " ranks; " + std::to_string(described) + " are there");
  }
  return std::move(schedule_);
}

void GoalParser::tell_position() {
  constexpr std::ptrdiff_t step_bytes = 4 << 20;
  if (scan_.position() - reported_ < step_bytes) return;
  reported_ = scan_.position();
  have_read_(reported_);
}

void GoalParser::parse_rank() {
  const std::string_view word = scan_.take_name();
  if (word != "rank") {
    if (word.empty()) scan_.refuse("rank");
    scan_.refuse(word, "rank");
  }
  const auto count = static_cast<std::int64_t>(schedule_.ranks.size());
  const auto number = static_cast<std::size_t>(scan_.take_number("a rank", 0, count - 1));
  if (is_described_[number]) scan_.refuse("rank " + std::to_string(number), "every rank once");
  is_described_[number] = true;
  scan_.skip_lines();
  if (!scan_.take('{')) scan_.refuse("{");
  rank_ = &schedule_.ranks[number];
  labels_.clear();
  dependencies_.clear();
  for (scan_.skip_lines(); !scan_.take('}'); scan_.skip_lines()) {
    if (scan_.at_end()) scan_.refuse("the } of rank " + std::to_string(number));
    parse_statement();
    tell_position();
    if (++statements_ % statements_between_checks == 0) check_for_interruption();
  }
  finish_rank();
}

void GoalParser::parse_statement() {
  const std::uint32_t line = scan_.line();
  const std::string_view first = scan_.take_name();
  if (first.empty()) scan_.refuse("send, recv, calc, a label or }");
  if (scan_.take(':')) {
    define(first, line);
    const std::string_view word = scan_.take_name();
    if (word.empty()) scan_.refuse("send, recv or calc");
    parse_operation(word);
    return;
  }
  if (first == "send" || first == "recv" || first == "calc") {
    parse_operation(first);
    return;
  }
  const std::string_view relation = scan_.take_name();
  if (relation != "requires" && relation != "irequires") {
    if (relation.empty()) scan_.refuse(std::string(first) + " to be followed by :, requires or irequires");
    scan_.refuse(relation, ":, requires or irequires");
  }
  const std::string_view other = scan_.take_name();
  if (other.empty()) scan_.refuse("a label");
  dependencies_.push_back({labels_.number(first), labels_.number(other), line, relation == "irequires"});
  end_statement();
}

void GoalParser::define(std::string_view label, std::uint32_t line) {
  std::uint32_t& operation = labels_.operation(labels_.number(label));
  if (operation != GoalLabels::undefined) {
    scan_.refuse_line(
        line, label,
        "every label once: it is that of line " + std::to_string(rank_->operations[operation].line));
  }
  operation = static_cast<std::uint32_t>(rank_->operations.size());
}

void GoalParser::parse_operation(std::string_view word) {
  GoalOperation operation;
  operation.line = scan_.line();
  std::ignore = scan_.take_remark();
  if (word == "calc") {
    operation.amount = scan_.take_number("nanoseconds", 0, most_ns);
  } else if (word == "send" || word == "recv") {
    operation.kind = word == "send" ? GoalOperationKind::send : GoalOperationKind::receive;
    parse_message(operation, word == "send");
  } else {
    scan_.refuse(word, "send, recv or calc");
  }
  parse_attributes(operation);
  if (rank_->operations.size() == most_operations) scan_.refuse(word, "fewer operations of one rank");
  rank_->cpus = std::max(rank_->cpus, static_cast<std::uint16_t>(operation.cpu + 1));
  end_statement();
  const GoalScanner::Remark remark = scan_.take_remark();
  operation.address = remark.address;
  operation.begun_in = number_of_call(remark.begun_in.name);
  operation.ended_in = number_of_call(remark.ended_in.name);
  operation.begun_number = remark.begun_in.number;
  operation.ended_number = remark.ended_in.number;
  operation.in_gpu = remark.in_gpu && operation.kind != GoalOperationKind::calc;
  if (operation.in_gpu) ++schedule_.buffers_in_gpu;
  if (operation.kind == GoalOperationKind::receive && operation.address == 0 && operation.amount > 0)
    ++schedule_.receives_at_no_address;
  rank_->operations.push_back(operation);
}

std::uint16_t GoalParser::number_of_call(std::string_view name) {
  if (name.empty()) return 0;
  if (const auto found = calls_.find(name); found != calls_.end()) return found->second;
  if (schedule_.calls.size() >= most_calls) return 0;
  const auto number = static_cast<std::uint16_t>(schedule_.calls.size());
  schedule_.calls.emplace_back(name);
  calls_.emplace(name, number);
  return number;
}

void GoalParser::parse_message(GoalOperation& operation, bool is_send) {
  operation.amount = scan_.take_number("the size of the message", 0, most_bytes);
  if (scan_.take_name() != "b") scan_.refuse("the size in bytes, such as 8b");
  const std::string_view direction = scan_.take_name();
  const char* wanted = is_send ? "to" : "from";
  if (direction != wanted) {
    if (direction.empty()) scan_.refuse(wanted);
    scan_.refuse(direction, wanted);
  }
  const auto most_rank = static_cast<std::int64_t>(schedule_.ranks.size()) - 1;
  const std::int64_t peer = scan_.take_number("a rank", is_send ? 0 : -1, most_rank);
  operation.peer = peer < 0 ? any_rank : static_cast<std::uint32_t>(peer);
}

// tag, cpu and nic, in any order, each at most once.
void GoalParser::parse_attributes(GoalOperation& operation) {
  bool has_tag = operation.kind == GoalOperationKind::calc;  // calc accepts no tag
  bool has_cpu = false;
  bool has_nic = false;
  while (!scan_.at_end_of_statement()) {
    const std::string_view word = scan_.take_name();
    if (word == "tag" && !std::exchange(has_tag, true)) {
      const bool is_receive = operation.kind == GoalOperationKind::receive;
      const std::int64_t tag = scan_.take_number("a tag", is_receive ? -1 : 0, most_tag);
      operation.tag = tag < 0 ? any_tag : static_cast<std::uint32_t>(tag);
    } else if (word == "cpu" && !std::exchange(has_cpu, true)) {
      operation.cpu = static_cast<std::uint16_t>(scan_.take_number("a CPU", 0, most_cpus - 1));
    } else if (word == "nic" && !std::exchange(has_nic, true)) {
      schedule_.nics.insert(
          static_cast<std::uint16_t>(scan_.take_number("a network interface", 0, most_cpus - 1)));
    } else if (word.empty()) {
      scan_.refuse("tag, cpu, nic or the end of the line");
    } else {
      scan_.refuse(word, "tag, cpu, nic, each once, or the end of the line");
    }
  }
}

void GoalParser::end_statement() {
  if (!scan_.at_end_of_statement()) scan_.refuse("the end of the line");
}

std::uint32_t GoalParser::operation_of(std::uint32_t label, std::uint32_t line) {
  const std::uint32_t operation = labels_.operation(label);
  if (operation == GoalLabels::undefined)
    scan_.refuse_line(line, labels_.text(label), "a label of an operation of this rank");
  return operation;
}

void GoalParser::finish_rank() {
  link();
  require_acyclic();
  rank_->operations.shrink_to_fit();
}

// Sorts the dependencies by the earlier operation (counting sort).
void GoalParser::link() {
  const std::size_t count = rank_->operations.size();
  std::vector<std::uint32_t>& first = rank_->first_successor;
  first.assign(count + 1, 0);
  for (const Dependency& dependency : dependencies_) {
    ++first[operation_of(dependency.earlier, dependency.line) + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  rank_->successors.resize(dependencies_.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (const Dependency& dependency : dependencies_) {
    const std::uint32_t later = operation_of(dependency.later, dependency.line);
    rank_->successors[next[labels_.operation(dependency.earlier)]++] =
        later | (dependency.on_start ? GoalRank::on_start : 0);
  }
}

// Kahn's algorithm: the operations that it cannot remove lie on cycles or behind them.
void GoalParser::require_acyclic() {
  const std::size_t count = rank_->operations.size();
  std::vector<std::uint32_t> waits_for(count, 0);
  for (const std::uint32_t successor : rank_->successors) ++waits_for[successor & ~GoalRank::on_start];
  std::vector<std::uint32_t> free;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (waits_for[i] == 0) free.push_back(i);
  }
  std::size_t done = 0;
  while (!free.empty()) {
    const std::uint32_t operation = free.back();
    free.pop_back();
    ++done;
    for (std::uint32_t s = rank_->first_successor[operation]; s < rank_->first_successor[operation + 1];
         ++s) {
      const std::uint32_t later = rank_->successors[s] & ~GoalRank::on_start;
      if (--waits_for[later] == 0) free.push_back(later);
    }
  }
  if (done < count) refuse_cycle(waits_for);
}

// Each remaining operation waits for another one, so following these dependencies ends in a cycle.
void GoalParser::refuse_cycle(const std::vector<std::uint32_t>& waiting) {
  const std::size_t count = rank_->operations.size();
  std::vector<const Dependency*> reason(count, nullptr);
  for (const Dependency& dependency : dependencies_) {
    const std::uint32_t earlier = labels_.operation(dependency.earlier);
    if (waiting[earlier] > 0) reason[labels_.operation(dependency.later)] = &dependency;
  }
  std::uint32_t at = 0;
  while (waiting[at] == 0) ++at;
  std::vector<std::uint8_t> seen(count);
  while (std::exchange(seen[at], std::uint8_t{1}) == 0) at = labels_.operation(reason[at]->earlier);
  constexpr std::size_t most_shown = 8;
  std::string cycle;
  std::size_t length = 0;
  const std::uint32_t begin = at;
  do {
    if (length++ < most_shown)
      cycle += std::string(labels_.text(reason[at]->later)) + " (line " +
               std::to_string(rank_->operations[at].line) + ") waits for ";
    at = labels_.operation(reason[at]->earlier);
  } while (at != begin);
  if (length > most_shown) cycle += "... ";
  const Dependency& first = *reason[begin];
  scan_.refuse_line(
      first.line,
      std::string(labels_.text(first.later)) + (first.on_start ? " irequires " : " requires ") +
          std::string(labels_.text(first.earlier)),
      "operations that do not wait for each other: " + cycle + std::string(labels_.text(first.later)));
}

// A file mapped into memory.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
      const char* reason = fd < 0 ? std::strerror(errno) : "not a regular file";
      if (fd >= 0) close(fd);
      refuse_value("trace", '"' + path + '"', std::string("a GOAL file that can be read (") + reason + ")");
    }
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ > 0) start_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (start_ == MAP_FAILED) throw std::bad_alloc();
    if (size_ > 0) madvise(start_, size_, MADV_SEQUENTIAL);
  }
  ~MappedFile() {
    if (size_ > 0) munmap(start_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view text() const { return {static_cast<const char*>(start_), size_}; }
  // Releases the memory before this position. It is read again from the file if needed.
  void drop_before(const char* position) const {
    const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const auto size = static_cast<std::size_t>(position - static_cast<const char*>(start_));
    madvise(start_, size / page_bytes * page_bytes, MADV_DONTNEED);
  }

 private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

std::uint64_t GoalSchedule::operation_count() const {
  std::uint64_t count = 0;
  for (const GoalRank& rank : ranks) count += rank.operations.size();
  return count;
}

GoalSchedule parse_goal(std::string_view text, const std::string& file) {
  return GoalParser(text, file, [](const char*) {}).parse();
}

GoalSchedule read_goal(const std::string& path, const std::string& name) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  const MappedFile file(path);
  std::string_view text = file.text();
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  return GoalParser(text, name, [&](const char* position) { file.drop_before(position); }).parse();
}

std::string to_text(const GoalOperation& operation) {
  const auto number = [](std::uint32_t value) {
    return value == any_rank ? std::string("-1") : std::to_string(value);
  };
  if (operation.kind == GoalOperationKind::calc) return "calc " + std::to_string(operation.amount);
  const bool is_send = operation.kind == GoalOperationKind::send;
  return std::string(is_send ? "send " : "recv ") + std::to_string(operation.amount) + "b " +
         (is_send ? "to " : "from ") + number(operation.peer) + " tag " + number(operation.tag);
}

}  // namespace apenet
