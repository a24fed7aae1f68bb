#include "runtime/launch/pmi_server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include "kernel/refuse.hpp"
#include "runtime/ipc/descriptor_path.hpp"
#include "runtime/scheduler/rank_error.hpp"
#include "runtime/scheduler/request_validation.hpp"

namespace apenet {
namespace {

constexpr std::size_t max_key_bytes = 64;
constexpr std::size_t max_value_bytes = 1024;
constexpr std::size_t max_line_bytes = 64 * 1024;
constexpr std::uint32_t max_entries = 16 * 1024;  // per rank

// MPICH's keys of the values that all ranks exchange: this, the number of the exchange, a dash, the rank.
constexpr std::string_view exchange_keys = "-allgather-";
constexpr std::size_t most_bytes_ahead = 32 * 1024;  // well below what a socket holds

std::string get_result(const std::string& value) {
  return "cmd=get_result rc=0 msg=success value=" + value;
}

std::map<std::string, std::string, std::less<>> parse_fields(std::string_view line) {
  std::map<std::string, std::string, std::less<>> fields;
  while (!line.empty()) {
    const std::size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) break;
    const std::string key{line.substr(0, equals)};
    line.remove_prefix(equals + 1);
    // Values contain no blanks, except the message of an abort and the name of a file, which are the last
    // field.
    const std::size_t end =
        key == "error_msg" || key == "library" ? line.size() : std::min(line.find(' '), line.size());
    fields[key] = std::string{line.substr(0, end)};
    line.remove_prefix(end);
  }
  return fields;
}

// The text as a message shows it.
std::string shown(std::string_view text) {
  constexpr std::size_t most_shown = 80;
  return quoted(text, most_shown);
}

// Clamps the code to the range of an int.
int parse_exit_code(std::uint32_t rank, const std::string& text) {
  char* end = nullptr;
  const long code = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0')
    throw RankError(rank, "aborted with the exit code " + shown(text) + ": expected a whole number");
  return static_cast<int>(std::clamp<long>(code, INT_MIN, INT_MAX));
}

// Libraries may have commands that the server does not know; it says so to them.
bool is_command(std::string_view name) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.find_first_not_of(letters) == std::string_view::npos;
}

}  // namespace

// MPI libraries also use this name for files in /dev/shm, so concurrent runs need different names. Of one
// length: they keep it in their memory.
PmiServer::PmiServer(std::vector<int> fds, FindLauncher find_launcher)
    : fds_(std::move(fds)),
      find_launcher_(std::move(find_launcher)),
      ranks_(fds_.size()),
      space_name_("apenet_" + ipc::padded(getpid(), '0')) {
  if (!topology_.path().empty()) values_["PMI_hwloc_xmlfile"] = topology_.path();
  // Nodes 0 to size-1 with one rank each: Intel MPI would put the ranks into shared memory, where those that
  // wait at its end could not be told from those that compute. The shim knows which ranks share a node.
  values_["PMI_process_mapping"] = "(vector,(0," + std::to_string(fds_.size()) + ",1))";
}

PmiServer::~PmiServer() {
  for (const int fd : fds_) {
    if (fd >= 0) close(fd);
  }
}

bool PmiServer::serve(std::uint32_t rank) {
  if (fds_[rank] < 0) return false;
  std::array<char, 16384> buffer;
  const ssize_t count = recv(fds_[rank], buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  try {
    std::string& pending = ranks_[rank].unread;
    pending.append(buffer.data(), static_cast<std::size_t>(count));
    const std::string text = std::exchange(pending, {});
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      const std::string_view line(text.data() + begin, end - begin);
      if (!is_answered(rank, line)) handle(rank, line);
      begin = end + 1;
    }
    pending = text.substr(begin);
    if (pending.size() > max_line_bytes)
      throw RankError(rank, "sent the process manager a line of more than " + std::to_string(max_line_bytes) +
                                " bytes, " + shown(pending));
  } catch (const RankError& error) {
    close_rank(error.rank());
    throw;
  }
  return true;
}

bool PmiServer::reconnect(std::uint32_t rank, int fd) {
  if (ranks_[rank].spoke) {
    close(fd);
    return false;
  }
  if (fds_[rank] >= 0) close_rank(rank);
  fds_[rank] = fd;
  return true;
}

void PmiServer::close_rank(std::uint32_t rank) {
  close(fds_[rank]);
  fds_[rank] = -1;
  ranks_[rank].unread.clear();
}

void PmiServer::handle(std::uint32_t rank, std::string_view line) {
  bool& in_spawn = ranks_[rank].in_spawn;
  if (line.starts_with("mcmd=spawn")) in_spawn = true;
  if (in_spawn) {
    if (line != "endcmd") return;
    in_spawn = false;
    spawn_refused_ = true;
    answer(rank, "cmd=spawn_result rc=-1 msg=a_simulated_machine_cannot_spawn");
    return;
  }
  constexpr std::string_view refused = "cmd=apenet_refused why=";
  if (line.starts_with(refused)) {
    ranks_[rank].refusal = line.substr(refused.size());
    return;
  }
  const Fields fields = parse_fields(line);
  const auto field = [&fields](std::string_view key) {
    const auto found = fields.find(key);
    return found == fields.end() ? std::string{} : found->second;
  };
  const std::string command = field("cmd");
  if (!is_command(command))
    throw RankError(rank, "sent the process manager the line " + shown(line) + ": expected cmd=NAME");
  const std::string size = std::to_string(fds_.size());
  if (command == "init") {
    ranks_[rank].spoke = true;
    ranks_[rank].speaks_pmi = true;
    answer(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
  } else if (command == "get_maxes") {
    answer(rank, "cmd=maxes kvsname_max=64 keylen_max=" + std::to_string(max_key_bytes) +
                     " vallen_max=" + std::to_string(max_value_bytes) + " rc=0");
  } else if (command == "get_appnum") {
    answer(rank, "cmd=appnum appnum=0 rc=0");
  } else if (command == "get_universe_size") {
    answer(rank, "cmd=universe_size size=" + size + " rc=0");
  } else if (command == "get_my_kvsname") {
    answer(rank, "cmd=my_kvsname kvsname=" + space_name_ + " rc=0");
  } else if (command == "put") {
    put(rank, values_, field("key"), field("value"));
    answer(rank, "cmd=put_result rc=0 msg=success");
  } else if (command == "get") {
    get(rank, field("key"));
  } else if (command == "barrier_in") {
    enter_barrier(rank);
  } else if (command == "publish_name") {
    put(rank, published_, field("service"), field("port"));
    answer(rank, "cmd=publish_result rc=0 info=ok");
  } else if (command == "unpublish_name") {
    const bool known = published_.erase(field("service")) > 0;
    answer(rank, std::string("cmd=unpublish_result ") + (known ? "rc=0 info=ok" : "rc=-1 info=not_found"));
  } else if (command == "lookup_name") {
    const auto found = published_.find(field("service"));
    answer(rank, found == published_.end() ? "cmd=lookup_result rc=-1 info=not_found"
                                           : "cmd=lookup_result rc=0 info=ok port=" + found->second);
  } else if (command == "finalize") {
    ranks_[rank].speaks_pmi = false;
    ranks_[rank].library.clear();
    answer(rank, "cmd=finalize_ack rc=0");
    compare_libraries();
  } else if (command == "apenet_library") {
    ranks_[rank].library = field("library");
    ranks_[rank].speaks_pmi = true;
    ranks_[rank].awaits_library = true;
    compare_libraries();
  } else if (command == "apenet_launcher" && find_launcher_) {
    ranks_[rank].spoke = true;
    ranks_[rank].asked_launcher = true;
    ranks_[rank].library = field("library");
    ranks_[rank].awaits_library = true;
    compare_libraries();
  } else if (command == "abort") {
    // MPICH aborts when it is refused.
    if (ranks_[rank].refusal.empty())
      aborts_.push_back({rank, parse_exit_code(rank, field("exitcode")), field("error_msg")});
  } else {
    answer(rank, "cmd=" + command + "_result rc=-1 msg=unknown_command");
  }
}

void PmiServer::note_end(std::uint32_t rank) {
  ranks_[rank].has_ended = true;
  compare_libraries();
}

// Ranks of two libraries would wait for each other for ever, or, as Intel MPI and MPICH, end with an error of
// their own. Libraries of one kind have the first word of their version in common. A library that has not
// told its version is not Open MPI.
bool PmiServer::are_of_two_libraries(const Rank& one, const Rank& other) {
  if (!other.speaks_pmi && !other.asked_launcher) return false;
  if (one.asked_launcher || other.asked_launcher) return one.asked_launcher != other.asked_launcher;
  const auto kind = [](std::string_view library) { return library.substr(0, library.find(' ')); };
  return !other.library.empty() && kind(one.library) != kind(other.library);
}

std::optional<PmiServer::TwoLibraries> PmiServer::find_two_libraries() const {
  const auto has_told = [](const Rank& each) { return !each.library.empty(); };
  const auto one = std::find_if(ranks_.begin(), ranks_.end(), has_told);
  if (one == ranks_.end()) return std::nullopt;
  const auto is_other = [&](const Rank& each) { return are_of_two_libraries(*one, each); };
  const auto other = std::find_if(ranks_.begin(), ranks_.end(), is_other);
  if (other == ranks_.end()) return std::nullopt;
  const auto number = [this](auto rank) { return static_cast<std::uint32_t>(rank - ranks_.begin()); };
  return TwoLibraries{.first = number(std::min(one, other)), .second = number(std::max(one, other))};
}

// Answers the ranks that have told their libraries. If these are two, waits until no other rank can tell its
// own: the host decides which rank does so first.
void PmiServer::compare_libraries() {
  if (find_two_libraries()) {
    const bool all_told = std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& each) {
      return each.has_ended || each.speaks_pmi || each.asked_launcher;
    });
    if (all_told) refuse_two_libraries();
    return;
  }
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!std::exchange(ranks_[rank].awaits_library, false)) continue;
    answer(rank, ranks_[rank].asked_launcher
                     ? "cmd=apenet_launcher_result " + find_launcher_(rank, ranks_[rank].library)
                     : "cmd=apenet_library_result");
  }
}

bool PmiServer::refuse_two_libraries() {
  const auto found = find_two_libraries();
  if (!found) return false;
  const auto name = [this](std::uint32_t rank) {
    const Rank& each = ranks_[rank];
    if (each.asked_launcher) return "Open MPI (" + each.library + ")";
    return each.library.empty() ? std::string("a library that meets the others by PMI-1") : each.library;
  };
  ranks_[found->second].refusal = "it has " + name(found->second) + ", but rank " +
                                  std::to_string(found->first) + " has " + name(found->first) +
                                  ": expected one MPI library in all ranks";
  return true;
}

void PmiServer::get(std::uint32_t rank, const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    answer(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown");
  } else {
    answer(rank, get_result(found->second) + answers_ahead(rank, key));
  }
}

// Each rank reads the values of all others, one by one: with hundreds of ranks, waiting for each answer takes
// most of the start. So once a rank has read two values of such a row, it gets the following ones with the
// second: they lie in its socket when it asks.
std::string PmiServer::answers_ahead(std::uint32_t rank, const std::string& key) {
  Row& row = ranks_[rank].row;
  const std::size_t number_at = key.rfind('-') + 1;
  if (!key.starts_with(exchange_keys) || number_at == key.size()) return {};
  const auto number = static_cast<std::uint32_t>(std::strtoul(key.c_str() + number_at, nullptr, 10));
  const bool continues = row.next == number && key.compare(0, number_at, row.prefix) == 0;
  row = {.prefix = key.substr(0, number_at), .next = number + 1};
  std::string lines;
  while (continues && lines.size() < most_bytes_ahead) {
    const auto found = values_.find(row.prefix + std::to_string(row.next + row.ahead));
    if (found == values_.end()) break;
    lines += "\n" + get_result(found->second);
    ++row.ahead;
  }
  return lines;
}

// Whether the line asks for a value that the rank has been sent ahead.
bool PmiServer::is_answered(std::uint32_t rank, std::string_view line) {
  Row& row = ranks_[rank].row;
  if (row.ahead == 0 || line.starts_with("cmd=abort")) return false;
  if (line != "cmd=get kvsname=" + space_name_ + " key=" + row.prefix + std::to_string(row.next)) {
    throw RankError(rank, "sent the process manager the line " + shown(line) +
                              " amid the values of all ranks: expected the "
                              "question for " +
                              row.prefix + std::to_string(row.next));
  }
  ++row.next;
  --row.ahead;
  return true;
}

void PmiServer::put(std::uint32_t rank, Fields& space, const std::string& key, const std::string& value) {
  if (key.empty() || key.size() > max_key_bytes || value.size() > max_value_bytes) {
    throw RankError(rank, "sent the process manager a key of " + std::to_string(key.size()) +
                              " bytes and a value of " + std::to_string(value.size()) +
                              ": expected at most " + std::to_string(max_key_bytes) + " and " +
                              std::to_string(max_value_bytes));
  }
  if (++ranks_[rank].entries > max_entries)
    throw RankError(rank, "sent the process manager more than " + std::to_string(max_entries) + " values");
  space[key] = value;
}

void PmiServer::enter_barrier(std::uint32_t rank) {
  if (std::exchange(ranks_[rank].in_barrier, true))
    throw RankError(rank, "entered the process manager's barrier twice");
  if (++in_barrier_ < fds_.size()) return;
  in_barrier_ = 0;
  for (Rank& each : ranks_) each.in_barrier = false;
  for (std::uint32_t each = 0; each < fds_.size(); ++each) answer(each, "cmd=barrier_out rc=0");
}

// A client sends one request at a time and waits for the answer, so the socket has room unless the client
// never reads.
void PmiServer::answer(std::uint32_t rank, const std::string& line) {
  if (fds_[rank] < 0) return;
  const std::string framed = line + "\n";
  const ssize_t sent = send(fds_[rank], framed.data(), framed.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  const bool is_gone = sent < 0 && errno != EAGAIN;
  if (sent != static_cast<ssize_t>(framed.size()) && !is_gone)
    throw RankError(rank, "does not read the process manager's answers");
}

}  // namespace apenet
