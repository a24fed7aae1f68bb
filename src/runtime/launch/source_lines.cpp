#include "runtime/launch/source_lines.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "kernel/one_line.hpp"
#include "runtime/ipc/code_files.hpp"

namespace apenet {
namespace {

constexpr std::size_t most_asked = 200;
constexpr std::size_t most_answer_bytes = 1 << 20;
constexpr std::size_t most_at_once = 1000;  // addresses on a command line
constexpr int patience_ms = 10'000;

// Returns what the tool prints; empty if it cannot be run or takes too long.
std::string answer_of(const std::vector<std::string>& command, bool& is_slow) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const bool runs = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string answer;
  std::array<char, 4096> part{};
  for (ssize_t bytes = 1; runs && bytes > 0 && answer.size() < most_answer_bytes;) {
    pollfd ready{.fd = ends[0], .events = POLLIN, .revents = 0};
    is_slow = poll(&ready, 1, patience_ms) == 0;
    if (is_slow) {
      kill(child, SIGKILL);
      answer.clear();
      break;
    }
    bytes = read(ends[0], part.data(), part.size());
    if (bytes > 0) answer.append(part.data(), static_cast<std::size_t>(bytes));
  }
  close(ends[0]);
  if (runs) waitpid(child, nullptr, 0);
  return answer;
}

// Returns "file.c:12" of "/folder/file.c:12 (discriminator 3)"; empty if the line says that it is not known.
std::string short_line(const std::string& line) {
  std::string place = line.substr(0, line.find(" (discriminator"));
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos || place.starts_with("??")) return {};
  const std::string number = place.substr(colon + 1);
  const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || number == "0") return {};
  place.erase(0, place.rfind('/') + 1);
  return one_line(place);
}

// A rank may have loaded a file that is a device or a pipe by now, and the lines of an MPI library serve
// nobody.
bool has_program_code(const std::string& file) {
  std::error_code error;
  return !ipc::is_mpi_library(file) && std::filesystem::is_regular_file(file, error);
}

}  // namespace

// A tool prints a line for each address.
void SourceLines::learn(const std::string& path, const std::string& file,
                        std::vector<std::uint64_t> addresses) {
  for (const char* tool : {"addr2line", "eu-addr2line", "llvm-addr2line"}) {
    std::erase_if(addresses, [&](std::uint64_t address) {
      const auto found = known_.find({file, address});
      return found != known_.end() && !found->second.empty();
    });
    if (addresses.empty() || is_slow_) break;
    std::vector<std::string> command{tool, "-e", path};
    for (const std::uint64_t address : addresses) {
      std::ostringstream number;
      number << "0x" << std::hex << address;
      command.push_back(number.str());
    }
    std::istringstream answer(answer_of(command, is_slow_));
    std::string line;
    for (const std::uint64_t address : addresses)
      known_[{file, address}] = std::getline(answer, line) ? short_line(line) : std::string{};
  }
}

std::string SourceLines::line_of(const std::string& path, const std::string& file, std::uint64_t address) {
  const auto key = std::pair(file, address);
  if (!known_.contains(key) && asked_++ < most_asked) learn(path, file, {address});
  const auto found = known_.find(key);
  return found == known_.end() ? std::string{} : found->second;
}

std::vector<std::string> SourceLines::lines_of_calls(const std::string& file,
                                                     const std::vector<std::uint64_t>& behind) {
  std::vector<std::string> lines(behind.size());
  if (!has_program_code(file)) return lines;
  for (std::size_t first = 0; first < behind.size(); first += most_at_once) {
    const std::size_t end = std::min(first + most_at_once, behind.size());
    std::vector<std::uint64_t> addresses;
    for (std::size_t i = first; i < end; ++i) addresses.push_back(behind[i] - 1);
    learn(file, file, addresses);
    for (std::size_t i = first; i < end; ++i) lines[i] = known_[{file, behind[i] - 1}];
  }
  return lines;
}

}  // namespace apenet
