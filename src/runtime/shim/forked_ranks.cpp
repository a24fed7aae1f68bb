// Forks the ranks of a program from one process of it, just before main().
//
// To load and link the libraries of an MPI program takes a third of a rank's start. The ranks that are forked
// here share that work. The process is told of a plan by its environment; it writes the process ids of the
// ranks to the plan's report, one a line, and ends before any rank begins. The ranks become children of the
// run's warden.
//
// A rank must be as if it had been started by itself. So nothing here allocates memory, and if a library has
// left something behind that a fork would not copy (threads, timers), or would share (open files), or has
// written something, the process ends without a report. The front end (python/apenet/host/launch.py) then
// starts each rank by itself.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/real.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not declared without _GNU_SOURCE

namespace apenet::shim {
namespace {

using ipc::host_call;

// The variable names the plan's descriptor. The plan is a row of texts that each end in a zero byte: the
// report's descriptor, the number of ranks, and for each rank its descriptors in the order input, output,
// error, process manager, the number of its variables, and the variables.
constexpr std::string_view variable = "APENET_RANK_PLAN";
constexpr std::size_t streams = 3;
constexpr std::size_t own_descriptors = 3;  // input, output and error of this process

void* pages(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Reads the texts of the plan one after another.
class Reader {
 public:
  explicit Reader(std::span<char> text) : text_(text) {}
  [[nodiscard]] bool failed() const { return failed_; }
  char* text() {
    const void* end = at_ < text_.size() ? std::memchr(&text_[at_], '\0', text_.size() - at_) : nullptr;
    if (end == nullptr) {
      failed_ = true;
      return text_.data();
    }
    char* found = &text_[at_];
    at_ = static_cast<std::size_t>(static_cast<const char*>(end) - text_.data()) + 1;
    return found;
  }
  int number() {
    const std::string_view digits = text();
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < 0) failed_ = true;
    return failed_ ? 0 : value;
  }

 private:
  std::span<char> text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

struct Rank {
  std::array<int, streams> stream{};
  int manager = -1;
  int variables = 0;
  char** variable = nullptr;
};

Rank read_rank(Reader& reader) {
  Rank rank;
  for (int& stream : rank.stream) stream = reader.number();
  rank.manager = reader.number();
  rank.variables = reader.number();
  return rank;
}

void close_descriptors(const Rank& rank) {
  for (const int stream : rank.stream) close(stream);
  close(rank.manager);
}

std::span<char> contents(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_size <= 0) return {};
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return {};
  return {static_cast<char*>(memory), bytes};
}

// The number of open descriptors; -1 if the system does not tell.
int open_descriptors() {
  struct Entry {  // of getdents64
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t bytes;
    std::uint8_t kind;
    char name;
  };
  const int folder = host_call(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  alignas(Entry) std::array<char, 4096> buffer;
  int count = -1;  // without the folder itself
  int bytes = 0;
  while ((bytes = host_call(SYS_getdents64, folder, buffer.data(), buffer.size())) > 0) {
    for (int at = 0; at < bytes;) {
      Entry entry;
      std::memcpy(&entry, &buffer[static_cast<std::size_t>(at)], sizeof entry);
      count += static_cast<int>(entry.name != '.');
      at += entry.bytes;
    }
  }
  host_call(SYS_close, folder, 0);
  return bytes < 0 ? -1 : count;
}

bool has_timers() {
  for (const __itimer_which_t which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval timer{};
    if (getitimer(which, &timer) != 0 || timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0)
      return true;
  }
  const int file = host_call(SYS_openat, AT_FDCWD, "/proc/self/timers", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;  // a kernel without this file has no way to tell
  char first = 0;
  const bool any = host_call(SYS_read, file, &first, 1) > 0;
  host_call(SYS_close, file, 0);
  return any;
}

bool has_written() {
  struct stat status {};
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (fstat(fd, &status) != 0 || status.st_size != 0) return true;
  }
  return false;
}

// Turns this process into a rank, up to the end of the process that has forked it. `others`: the plan from
// this rank on.
void become(const Rank& rank, Reader others, int left, std::array<int, 2> gate, int report) {
  close(gate[1]);
  close(report);
  setpgid(0, 0);
  for (std::size_t i = 0; i < streams; ++i) dup2(rank.stream[i], static_cast<int>(i));
  for (const int stream : rank.stream) close(stream);
  for (; left > 0; --left) {
    const Rank other = read_rank(others);
    for (int i = 0; i < other.variables; ++i) others.text();
    close_descriptors(other);
  }
  environ = rank.variable;
  char nothing = 0;
  while (read(gate[0], &nothing, 1) < 0 && errno == EINTR) {
  }
  close(gate[0]);
  // In a rank that starts by itself, UCX's initialiser asks for the time, and the shim creates the client.
  ipc::Client::attached();
}

// Returns in the ranks only.
void serve(const char* plan_text) {
  const int plan = std::atoi(plan_text);
  const std::span<char> text = contents(plan);
  Reader reader(text);
  const int report = reader.number();
  const int count = reader.number();
  int common = 0;
  while (environ[common] != nullptr) ++common;
  auto* process_ids = static_cast<pid_t*>(pages(sizeof(pid_t) * (static_cast<std::size_t>(count) + 1)));
  std::array<int, 2> gate{};
  // Besides its own, this process has the plan, the report, those of the ranks, and the shim's lifeline.
  const int lifeline = std::getenv("APENET_LIFELINE") == nullptr ? 0 : 1;
  const int given = static_cast<int>(own_descriptors) + 2 + lifeline + count * static_cast<int>(streams + 1);
  if (reader.failed() || process_ids == nullptr || __libc_single_threaded == 0 || has_timers() ||
      has_written() || open_descriptors() != given || pipe2(gate.data(), O_CLOEXEC) != 0) {
    _exit(EXIT_FAILURE);
  }
  close(plan);
  int forked = 0;
  for (int left = count; left > 0; --left) {
    Rank rank = read_rank(reader);
    const auto most = static_cast<std::size_t>(common) + static_cast<std::size_t>(rank.variables);
    rank.variable = static_cast<char**>(pages(sizeof(char*) * (most + 1)));
    char** next = rank.variable;
    for (int i = 0; i < common && next != nullptr; ++i) {
      const std::string_view inherited = environ[i];
      if (!inherited.starts_with(variable)) *next++ = environ[i];
    }
    for (int i = 0; i < rank.variables && next != nullptr; ++i) *next++ = reader.text();
    const pid_t process_id = next == nullptr || reader.failed() ? -1 : fork();
    if (process_id == 0) {
      become(rank, reader, left - 1, gate, report);
      return;
    }
    if (process_id < 0) {
      for (int i = 0; i < forked; ++i) kill(process_ids[i], SIGKILL);
      _exit(EXIT_FAILURE);
    }
    setpgid(process_id, process_id);
    process_ids[forked++] = process_id;
    munmap(rank.variable, sizeof(char*) * (most + 1));
    close_descriptors(rank);
  }
  for (int i = 0; i < forked; ++i) {
    std::array<char, 16> line{};
    char* end = std::to_chars(line.data(), line.data() + line.size() - 1, process_ids[i]).ptr;
    *end++ = '\n';
    if (write(report, line.data(), static_cast<std::size_t>(end - line.data())) < 0) break;
  }
  _exit(EXIT_SUCCESS);
}

using Main = int (*)(int, char**, char**);
using Hook = void (*)();
using StartMain = int (*)(Main, int, char**, Hook, Hook, Hook, void*);

}  // namespace
}  // namespace apenet::shim

// The program's first function calls it when the loader has run the initialisers of all libraries.
APENET_EXPORT int __libc_start_main(  // NOLINT(bugprone-reserved-identifier): the C library's name
    apenet::shim::Main main, int count, char** arguments, apenet::shim::Hook begin, apenet::shim::Hook end,
    apenet::shim::Hook unload, void* stack_end) {
  const auto real = apenet::shim::next<apenet::shim::StartMain>("__libc_start_main");
  if (const char* plan = std::getenv(apenet::shim::variable.data())) apenet::shim::serve(plan);
  return real(main, count, arguments, begin, end, unload, stack_end);
}
