// Forks the ranks of a program from one process of it, just before main().
//
// To load and link the libraries of an MPI program takes a third of a rank's start. The ranks that are forked
// here share that work. The process is told of a plan by its environment; it writes the process ids of the
// ranks to the plan's report, one a line, and ends before any rank begins. The ranks become children of the
// run's supervisor.
//
// A rank must be as if it had been started by itself. So nothing here allocates memory, and if a library has
// left something behind that a fork would not copy (threads, timers), or would share (memory, open files), or
// has written something, the process ends without a report. The front end (python/apenet/host/launch.py) then
// starts each rank by itself.
#include <alloca.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/main_stack.hpp"
#include "runtime/shim/real.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not declared without _GNU_SOURCE

namespace apenet::shim {
namespace {

using ipc::host_call;

// The variable names the plan's descriptor. The plan is a row of texts that each end in a zero byte: the
// report's descriptor, the number of ranks, the number that the process manager's descriptor gets in every
// rank, and for each rank its descriptors in the order input, output,
// error, process manager, the number of its variables, and the variables.
constexpr const char* plan_variable = "APENET_RANK_PLAN";
// A rank's variables are written over those whose names begin so, one after the other, where they lie: there
// /proc/PID/environ shows them, by which tools find the ranks of a run.
constexpr std::string_view place_prefix = "APENET_RANK_PLACE_";
constexpr std::size_t streams = 3;
constexpr std::size_t own_descriptors = 3;  // input, output and error of this process

void* pages(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Reads the texts of the plan one after another, as the supervisor's plan is read (supervisor/plan.cpp), but
// where they lie.
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
};

Rank read_rank(Reader& reader) {
  Rank rank;
  for (int& stream : rank.stream) stream = reader.number();
  rank.manager = reader.number();
  rank.variables = reader.number();
  return rank;
}

void skip_variables(Reader& reader, const Rank& rank) {
  for (int i = 0; i < rank.variables; ++i) reader.text();
}

// Calls take(place, variable) for each of the rank's variables, and returns whether there is a place for
// each.
template <typename Take>
bool for_variables(Reader reader, const Rank& rank, Take take) {
  int left = rank.variables;
  for (char** entry = environ; *entry != nullptr && left > 0; ++entry) {
    const std::string_view old = *entry;
    if (!old.starts_with(place_prefix)) continue;
    const std::string_view text = reader.text();
    if (text.size() > old.size()) return false;
    take(*entry, text);
    --left;
  }
  return left == 0 && !reader.failed();
}

bool has_places(const Reader& variables, const Rank& rank) {
  return for_variables(variables, rank, [](char*, std::string_view) {});
}

void set_variables(const Reader& variables, const Rank& rank) {
  for_variables(variables, rank, [](char* entry, std::string_view text) {
    const std::size_t room = std::strlen(entry);
    std::memset(entry, 0, room);
    std::memcpy(entry, text.data(), text.size());
  });
  char** kept = environ;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.substr(0, text.find('=')) == plan_variable) {
      std::memset(*entry, 0, text.size());
    } else {
      *kept++ = *entry;
    }
  }
  *kept = nullptr;
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
  struct FolderEntry {  // as getdents64 writes it
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t bytes;
    std::uint8_t kind;
    char name;
  };
  const int folder = host_call(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  alignas(FolderEntry) std::array<char, 4096> buffer;
  int count = -1;  // without the folder itself
  int bytes = 0;
  while ((bytes = host_call(SYS_getdents64, folder, buffer.data(), buffer.size())) > 0) {
    for (int at = 0; at < bytes;) {
      FolderEntry entry;
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

// Whether some memory would be common to the ranks. The permissions follow the first space of a line, as in
// "7f00-7f40 rw-s".
bool has_shared_memory() {
  const int file = host_call(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  std::array<char, 4096> buffer;
  constexpr int in_address = -1;
  constexpr int write_at = 1;
  constexpr int shared_at = 3;
  int at = in_address;
  bool is_written = false;
  bool any = false;
  int bytes = 0;
  while ((bytes = host_call(SYS_read, file, buffer.data(), buffer.size())) > 0) {
    for (const char letter : std::span(buffer).first(static_cast<std::size_t>(bytes))) {
      if (letter == '\n') {
        at = in_address;
      } else if (at == in_address) {
        at = letter == ' ' ? 0 : in_address;
      } else {
        if (at == write_at) is_written = letter == 'w';
        any = any || (at == shared_at && is_written && letter == 's');
        ++at;
      }
    }
  }
  host_call(SYS_close, file, 0);
  return any || bytes < 0;
}

// Both streams are pipes here.
bool has_written() {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    int bytes = 0;
    if (ioctl(fd, FIONREAD, &bytes) != 0 || bytes != 0) return true;
  }
  return __fpending(stdout) != 0 || __fpending(stderr) != 0;
}

// Turns this process into a rank, up to the end of the process that has forked it. `others`: the plan behind
// this rank, of so many ranks.
void become(const Rank& rank, const Reader& variables, Reader others, int count) {
  setpgid(0, 0);
  for (std::size_t i = 0; i < streams; ++i) dup2(rank.stream[i], static_cast<int>(i));
  for (const int stream : rank.stream) close(stream);
  for (; count > 0; --count) {
    const Rank other = read_rank(others);
    skip_variables(others, other);
    close_descriptors(other);
  }
  set_variables(variables, rank);
}

// Afterwards this process is the supervisor's child, and ends with it, as one that the supervisor has
// started.
void await_end_of_server(int gate, pid_t server) {
  char nothing = 0;
  while (read(gate, &nothing, 1) < 0 && errno == EINTR) {
  }
  close(gate);
  while (getppid() == server) host_call(SYS_sched_yield, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// Whether a fork of this process is as a process that has just been started. `given`: descriptors that it has
// got.
bool is_fresh(int given) {
  return ipc::is_single_threaded() && !has_timers() && !has_shared_memory() && !has_written() &&
         open_descriptors() == given;
}

void report_ranks(int report, std::span<const pid_t> process_ids) {
  for (const pid_t process_id : process_ids) {
    std::array<char, 16> line{};
    char* end = std::to_chars(line.data(), line.data() + line.size() - 1, process_id).ptr;
    *end++ = '\n';
    if (write(report, line.data(), static_cast<std::size_t>(end - line.data())) < 0) return;
  }
}

// Returns in the ranks only.
void serve(const char* plan_text) {
  const pid_t server = getpid();
  const int plan = std::atoi(plan_text);
  Reader reader(contents(plan));
  const int report = reader.number();
  const int count = reader.number();
  const int manager_number = reader.number();
  // Besides its own, this process has the plan, the report, those of the ranks, and the shim's lifeline.
  const int lifeline = std::getenv("APENET_LIFELINE") == nullptr ? 0 : 1;
  const int given = static_cast<int>(own_descriptors) + 2 + lifeline + count * static_cast<int>(streams + 1);
  auto* process_ids = static_cast<pid_t*>(pages(sizeof(pid_t) * (static_cast<std::size_t>(count) + 1)));
  std::array<int, 2> gate{};
  if (reader.failed() || process_ids == nullptr || !is_fresh(given) || pipe2(gate.data(), O_CLOEXEC) != 0)
    _exit(EXIT_FAILURE);
  close(plan);
  for (int forked = 0; forked < count; ++forked) {
    const Rank rank = read_rank(reader);
    const Reader variables = reader;
    skip_variables(reader, rank);
    const pid_t process_id = reader.failed() || !has_places(variables, rank) ? -1 : fork();
    if (process_id == 0) {
      close(gate[1]);
      close(report);
      become(rank, variables, reader, count - forked - 1);
      await_end_of_server(gate[0], server);
      if (rank.manager != manager_number) {
        dup2(rank.manager, manager_number);
        close(rank.manager);
      }
      // In a rank that starts by itself, UCX's initialiser asks for the time, and the shim creates the
      // client.
      ipc::Client::attached();
      return;
    }
    if (process_id < 0) {
      for (int i = 0; i < forked; ++i) kill(process_ids[i], SIGKILL);
      _exit(EXIT_FAILURE);
    }
    setpgid(process_id, process_id);
    process_ids[forked] = process_id;
    close_descriptors(rank);
  }
  report_ranks(report, {process_ids, static_cast<std::size_t>(count)});
  _exit(EXIT_SUCCESS);
}

using Main = int (*)(int, char**, char**);
using Hook = void (*)();
using StartMain = int (*)(Main, int, char**, Hook, Hook, Hook, void*);

}  // namespace

// The program's first function calls it when the loader has run the initialisers of all libraries.
APENET_EXPORT int __libc_start_main(  // NOLINT(bugprone-reserved-identifier): the C library's name
    Main main, int count, char** arguments, Hook begin, Hook end, Hook unload, void* stack_end) {
  const auto real = next<StartMain>("__libc_start_main").get();
  if (const char* plan = std::getenv(plan_variable)) serve(plan);
  void* const gap = alloca(bytes_above_main(__builtin_frame_address(0)));
  reserve_below_main(gap);
  const int status = real(main, count, arguments, begin, end, unload, stack_end);
  asm volatile("" : : "r"(gap));  // keeps the gap until then
  return status;
}

}  // namespace apenet::shim
