#include "runtime/launch/wait_text.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "kernel/one_line.hpp"
#include "runtime/ipc/code_symbols.hpp"
#include "runtime/ipc/old_calls.hpp"
#include "runtime/ipc/thread_order.hpp"
#include "runtime/launch/code_places.hpp"
#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/host_waits.hpp"
#include "runtime/launch/open_files.hpp"
#include "runtime/launch/remote_memory.hpp"
#include "runtime/launch/system_v.hpp"
#include "runtime/launch/waiting_call.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

constexpr std::size_t most_lines = 64;  // longest report

// A thread's number in reports: 1 is the one that runs main().
std::optional<std::size_t> number_of(int process_id, int thread_id) {
  const std::vector<int> threads = threads_of(process_id);
  const auto at = std::find(threads.begin(), threads.end(), thread_id);
  if (at == threads.end()) return std::nullopt;
  return static_cast<std::size_t>(at - threads.begin()) + 1;
}

bool has_ended(int process_id) {
  const auto state = thread_state(process_id, process_id);
  return !state || state->state == 'Z' || state->state == 'X';
}

// The processes of a rank that have the same name as this one, which the rank has started, in the order in
// which they were, unless their numbers have wrapped.
std::vector<int> namesakes_of(int process_id, const std::map<int, std::uint32_t>& family,
                              const std::vector<int>& rank_processes) {
  const auto name_of = [](int process) {
    const auto state = thread_state(process, process);
    return state ? state->name : std::string{};
  };
  std::vector<int> namesakes;
  for (const auto& [other, rank] : family) {
    const bool is_own = other == rank_processes[rank];
    if (!is_own && rank == family.at(process_id) && !has_ended(other) &&
        name_of(other) == name_of(process_id))
      namesakes.push_back(other);
  }
  return namesakes;
}

// "1-3, 5"
std::string name_numbers(const std::vector<std::uint32_t>& numbers) {
  const std::string text = name_ranks(numbers);  // "rank 2", "ranks 2-5"
  return text.substr(text.find(' ') + 1);
}

// What a thread has that another one waits for: "thread 2 holds" of the same process, "process 'a.out' (2)
// holds" or "rank 2 holds" of another one; empty if it is not known.
std::string holder_of(int process_id, int thread_id, const std::vector<int>& rank_processes) {
  if (thread_id == 0) return {};
  if (const auto number = number_of(process_id, thread_id))
    return "thread " + std::to_string(*number) + " holds";
  const int holder = process_of(thread_id);
  const std::map<int, std::uint32_t> family = families(rank_processes);
  if (holder == 0 || has_ended(holder)) return "a thread or process held that has ended";
  if (!family.contains(holder)) return {};
  if (const std::uint32_t rank = family.at(holder); holder == rank_processes[rank]) {
    const auto own = family.find(process_id);
    const bool is_same = own != family.end() && own->second == rank;
    return (is_same ? "the process of the rank" : "rank " + std::to_string(rank)) + " holds";
  }
  const std::vector<int> namesakes = namesakes_of(holder, family, rank_processes);
  const auto at = std::find(namesakes.begin(), namesakes.end(), holder);
  if (at == namesakes.end()) return {};
  const auto number = static_cast<std::uint32_t>(at - namesakes.begin()) + 1;
  const std::string which = namesakes.size() == 1 ? "" : " (" + std::to_string(number) + ")";
  return "process '" + thread_state(holder, holder)->name + "'" + which + " holds";
}

bool is_read_write_lock(std::string_view meeting) {
  return meeting.find("rdlock") != std::string_view::npos || meeting.find("wrlock") != std::string_view::npos;
}

bool is_lock(std::string_view meeting) {
  return meeting.find("mutex") != std::string_view::npos || meeting == "mtx_lock" ||
         is_read_write_lock(meeting);
}

std::string describe_lock(std::string_view meeting, const std::string& holder) {
  return (is_read_write_lock(meeting) ? "a read-write lock" : "a lock") +
         (holder.empty() ? std::string() : " that " + holder);
}

// The thread that a lock of glibc names, at 8 bytes behind a mutex's word. A read-write lock has its writer's
// at byte 24, and threads wait at byte 8 or 12. What follows it is 0 or 1, and what lies before it is 0.
std::int32_t owner_of_lock(int process_id, std::uint64_t word, std::string_view meeting) {
  const auto number_at = [&](std::uint64_t byte) {
    return read_value<std::int32_t>(process_id, word + byte).value_or(0);
  };
  if (!is_read_write_lock(meeting)) return number_at(8);
  return number_at(16) > 1 ? number_at(16) : number_at(12);
}

// A wait in the order of the rank's threads; nothing for another futex.
std::optional<std::string> describe_ordered(int process_id, const SystemCall& call, const Caller& caller,
                                            const std::vector<int>& rank_processes) {
  // A frame of the shim may hold an old address of the program above the call.
  const std::string& meeting = caller.meeting.empty() ? caller.deeper_meeting : caller.meeting;
  using Awaits = ipc::ThreadWord::Awaits;
  struct Word {
    std::uint32_t changes, mark;
    Awaits awaits;
    std::int32_t thread_id;
  };
  static_assert(sizeof(Word) == sizeof(ipc::ThreadWord));
  const auto word = read_value<Word>(process_id, call.arguments[0]);
  if (!word || word->mark != ipc::ThreadWord::marks_one) return std::nullopt;
  const auto number = word->thread_id == 0 ? std::nullopt : number_of(process_id, word->thread_id);
  const std::string other = number ? "thread " + std::to_string(*number) : "";
  const std::string where = meeting.empty() ? "" : "in " + meeting;
  switch (word->awaits) {
    case Awaits::order:
      return other.empty() ? "waits until the other threads have acted"
                           : "waits until " + other + " has acted";
    case Awaits::time:
      return "sleeps";
    default:
      break;
  }
  if (meeting.find("join") != std::string::npos && number)
    return "waits " + where + " for " + other + " to end";
  const std::string what =
      is_lock(meeting) ? describe_lock(meeting, holder_of(process_id, word->thread_id, rank_processes))
                       : "another thread";
  return "waits " + (where.empty() ? "" : where + ", ") + "for " + what;
}

// pthread_join waits at the word in which the kernel keeps a living thread's number.
std::string describe_futex(int process_id, const SystemCall& call, const Caller& caller,
                           const std::vector<int>& rank_processes) {
  if (const auto text = describe_ordered(process_id, call, caller, rank_processes)) return *text;
  const std::uint64_t word = call.arguments[0];
  const bool is_private = (call.arguments[1] & FUTEX_PRIVATE_FLAG) != 0;
  const auto expected = static_cast<std::uint32_t>(call.arguments[2]);
  const auto joined = number_of(process_id, static_cast<int>(expected));
  const std::string limit = call.arguments[3] == 0 ? "" : ", for a limited time";
  if (!is_private && joined && read_value<std::uint32_t>(process_id, word) == expected)
    return "waits in pthread_join for thread " + std::to_string(*joined) + " to end" + limit;
  const std::string where = caller.meeting.empty() ? "" : "in " + caller.meeting + ", ";
  if (is_lock(caller.meeting)) {
    const std::int32_t owner = owner_of_lock(process_id, word, caller.meeting);
    return "waits " + where + "for " +
           describe_lock(caller.meeting, holder_of(process_id, owner, rank_processes)) + limit;
  }
  if (!where.empty() && limit.empty())
    return "waits " + where + "for another thread" + (is_private ? "" : " or process");
  return call.arguments[3] == 0
             ? "waits " + where + "for another thread or process, in a futex"
             : "waits " + where + "for another thread or process for a limited time, in a futex";
}

// Describes the files for which a call waits.
std::string describe_files(const std::string& call, const std::vector<int>& fds, int process_id,
                           const OpenFiles& files) {
  constexpr std::size_t most_named = 3;
  std::vector<std::string> descriptions;
  for (const int fd : fds) descriptions.push_back(files.describe(process_id, static_cast<std::uint64_t>(fd)));
  // Beside other files, these are what a library uses to wake itself.
  const auto wakes = [](const std::string& one) { return one == "the eventfd" || one == "the timerfd"; };
  if (!std::all_of(descriptions.begin(), descriptions.end(), wakes)) std::erase_if(descriptions, wakes);
  std::string text;
  for (std::size_t i = 0; i < std::min(descriptions.size(), most_named); ++i)
    text += (text.empty() ? "" : "; ") + descriptions[i];
  if (descriptions.size() > most_named)
    text += "; and " + std::to_string(descriptions.size() - most_named) + " more";
  return "waits in " + call + (text.empty() ? "" : " for " + text);
}

std::vector<int> polled_files(int process_id, const SystemCall& call) {
  constexpr std::uint64_t most_read = 1024;
  std::vector<pollfd> polled(std::min(call.arguments[1], most_read));
  std::vector<int> fds;
  if (!read_values(process_id, call.arguments[0], polled.data(), polled.size())) return fds;
  for (const pollfd& one : polled) {
    if (one.fd >= 0) fds.push_back(one.fd);
  }
  return fds;
}

// Those of the sets for reading, writing and exceptions.
std::vector<int> selected_files(int process_id, const SystemCall& call) {
  const std::uint64_t count = std::min<std::uint64_t>(call.arguments[0], FD_SETSIZE);
  std::array<std::uint64_t, FD_SETSIZE / 64> all{};
  for (int which = 1; which <= 3; ++which) {
    std::array<std::uint64_t, FD_SETSIZE / 64> set{};
    const std::uint64_t address = call.arguments[which];
    if (address == 0 || !read_values(process_id, address, set.data(), (count + 63) / 64)) continue;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] |= set[i];
  }
  std::vector<int> fds;
  for (std::uint64_t fd = 0; fd < count; ++fd) {
    if ((all[fd / 64] >> fd % 64 & 1) != 0) fds.push_back(static_cast<int>(fd));
  }
  return fds;
}

std::string describe_children(int process_id) {
  std::string text;
  for (const HostProcess& process : host_processes()) {
    if (process.parent_id != process_id) continue;
    const auto state = thread_state(process.process_id, process.process_id);
    if (!state || state->state == 'Z') continue;
    text += (text.empty() ? "" : ", ") + state->name;
  }
  return "waits for a process that it has started" + (text.empty() ? "" : ": " + text);
}

std::string call_name(long number) {
  static constexpr std::pair<long, const char*> known[] = {
#include "runtime/launch/call_names.inc"
  };
  const auto* const found = std::find_if(std::begin(known), std::end(known),
                                         [=](const auto& name) { return name.first == number; });
  return found != std::end(known) ? found->second : std::to_string(number);
}

// "SIGUSR1, SIGUSR2 or SIGTERM", or "a signal" of a set that is empty or large.
std::string name_signals(std::uint64_t set) {
  constexpr int most_named = 4;
  const int count = std::popcount(set);
  if (count == 0 || count > most_named) return "a signal";
  std::string text;
  for (int signal = 1, named = 0; signal <= 64; ++signal) {
    if ((set >> (signal - 1) & 1) == 0) continue;
    const char* const name = sigabbrev_np(signal);
    const char* const before = named == 0 ? "" : named + 1 == count ? " or " : ", ";
    ++named;
    text += before + (name == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(name));
  }
  return text;
}

std::string describe_opening(const std::string& path) {
  const std::string what = path.empty() ? "a file" : path;
  return "is blocked in opening " + what + ", such as a fifo whose other end is not open";
}

std::string describe_reading(int process_id, std::uint64_t fd, const OpenFiles& files) {
  const std::uint64_t signals = awaited_signals(process_id, fd);
  return "reads from " + files.describe(process_id, fd) +
         (signals == 0 ? "" : ", for " + name_signals(signals));
}

std::string describe_call(int process_id, const SystemCall& call, const OpenFiles& files,
                          const Caller& caller, const std::vector<int>& rank_processes) {
  const auto file = [&] { return files.describe(process_id, call.arguments[0]); };
  switch (call.number) {
    case SYS_read:
    case SYS_readv:
    case SYS_preadv2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_splice:
    case SYS_tee:
      return describe_reading(process_id, call.arguments[0], files);
    case SYS_write:
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_vmsplice:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
      return "writes to " + file();
    case SYS_semop:
    case SYS_semtimedop:
      return "waits in semop for " + name_of_semaphores(process_id, static_cast<int>(call.arguments[0]));
    case SYS_msgrcv:
      return "waits in msgrcv for a message of " +
             name_of_messages(process_id, static_cast<int>(call.arguments[0]));
    case SYS_msgsnd:
      return "waits in msgsnd for room in " +
             name_of_messages(process_id, static_cast<int>(call.arguments[0]));
    case SYS_mq_timedreceive:
      return "waits in mq_receive for a message of the queue " +
             descriptor_link(process_id, call.arguments[0]);
    case SYS_mq_timedsend:
      return "waits in mq_send for room in the queue " + descriptor_link(process_id, call.arguments[0]);
    case SYS_accept:
    case SYS_accept4:
      return "waits for a connection to " + file();
    case SYS_connect:
      return "connects " + file();
    case SYS_flock:
    case SYS_fcntl:
      return "waits for a lock on " + file();
    case ipc::old_call::open:
      return describe_opening(read_text(process_id, call.arguments[0]));
    case SYS_openat:
      return describe_opening(read_text(process_id, call.arguments[1]));
    case ipc::old_call::epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return describe_files("epoll_wait", watched_by_epoll(process_id, call.arguments[0]), process_id, files);
    case ipc::old_call::poll:
    case SYS_ppoll:
      return describe_files("poll", polled_files(process_id, call), process_id, files);
    case ipc::old_call::select:
    case SYS_pselect6:
      return describe_files("select", selected_files(process_id, call), process_id, files);
    case SYS_wait4:
    case SYS_waitid:
      return describe_children(process_id);
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return "sleeps";
    case ipc::old_call::pause:
      return "waits in pause for a signal";
    case SYS_rt_sigsuspend:
      return "waits in sigsuspend for a signal";
    case SYS_rt_sigtimedwait:
      return "waits in sigwait for " + name_signals(awaited_signals(process_id, call));
    case SYS_futex_waitv:
      return "waits for another thread or process, at several futexes";
    case SYS_futex:
      return describe_futex(process_id, call, caller, rank_processes);
    default:
      return call.number < 0 ? "is blocked in the host (a read, a lock, another process)"
                             : "is blocked in the system call " + call_name(call.number);
  }
}

// "threads 2-5" of a process, or nothing for the one that runs main().
std::string name_threads(std::vector<std::uint32_t> numbers) {
  if (numbers.size() == 1 && numbers.front() == 1) return {};
  std::string text = name_ranks(numbers);
  return ", thread" + text.substr(4);  // "rank 2", "ranks 2-5"
}

}  // namespace

std::string describe_wait(int process_id, int thread_id, const std::vector<int>& rank_processes,
                          SourceLines& lines) {
  const auto state = thread_state(process_id, thread_id);
  if (state && state->state == 'T') return "is stopped by a signal, and SIGCONT would let it go on";
  if (state && state->state == 't') return "is stopped by a debugger";
  const SystemCall call = system_call(process_id, thread_id);
  const OpenFiles files(rank_processes, {}, {});
  const Caller caller = caller_of(process_id, call, lines);
  const std::string text = describe_call(process_id, call, files, caller, rank_processes);
  return one_line(text) + (caller.line.empty() ? "" : " (" + caller.line + ")");
}

std::string describe_work(const std::vector<int>& rank_processes, std::uint32_t rank, SourceLines& lines) {
  const int process_id = rank_processes[rank];
  const std::vector<int> threads = threads_of(process_id);
  const bool computes = std::any_of(threads.begin(), threads.end(), [process_id](int thread) {
    const auto state = thread_state(process_id, thread);
    return state && state->state == 'R';
  });
  // The process's first thread runs the program's main().
  return computes ? "computes" : describe_wait(process_id, process_id, rank_processes, lines);
}

// A binding of an MPI library, such as that for Fortran, may stand between the program and the call. The
// program's frame lies next to it on the stack.
std::string place_of_call(int process_id, std::uint64_t caller, std::uint64_t frame, SourceLines& lines) {
  constexpr std::size_t examined_bytes = 2048;
  CodePlaces places(process_id);
  const auto is_binding = [&places](std::uint64_t address) {
    return ipc::is_mpi_function(places.file_of(address), places.function_of(address));
  };
  if (!is_binding(caller)) return places.line_of_call(caller, lines);
  for (const std::uint64_t address : places.calls_on_stack(frame, frame == 0 ? 0 : examined_bytes)) {
    if (is_binding(address)) continue;
    if (std::string line = places.line_of_call(address, lines); !line.empty()) return line;
  }
  return {};
}

std::string describe_threads(const std::vector<std::uint32_t>& ranks, const std::vector<int>& rank_processes,
                             const std::map<int, std::uint32_t>& family, SourceLines& lines) {
  struct Line {
    std::uint32_t rank;
    std::string process;  // its name; empty: the rank's own
    std::string text;     // which threads, and their wait
    std::size_t alike;    // processes of that name
    std::vector<std::uint32_t> numbers;
  };
  std::vector<Line> all_lines;
  for (const auto& [process_id, rank] : family) {
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    std::vector<std::pair<std::string, std::vector<std::uint32_t>>> waits;  // the text, and its threads
    const std::vector<int> threads = threads_of(process_id);
    for (std::uint32_t number = 1; number <= threads.size(); ++number) {
      const int thread_id = threads[number - 1];
      const auto state = thread_state(process_id, thread_id);
      if (!state || state->state == 'Z' ||
          (number > 1 && is_library_thread(process_id, thread_id).value_or(false)))
        continue;
      std::string text = describe_wait(process_id, thread_id, rank_processes, lines);
      const auto same =
          std::find_if(waits.begin(), waits.end(), [&](const auto& one) { return one.first == text; });
      if (same == waits.end()) {
        waits.emplace_back(std::move(text), std::vector{number});
      } else {
        same->second.push_back(number);
      }
    }
    const auto main = thread_state(process_id, process_id);
    const bool is_own = process_id == rank_processes[rank];
    const std::string name = is_own || !main ? std::string{} : main->name;
    const std::vector<int> namesakes =
        is_own ? std::vector<int>{} : namesakes_of(process_id, family, rank_processes);
    const auto at = std::find(namesakes.begin(), namesakes.end(), process_id) - namesakes.begin();
    for (const auto& [text, numbers] : waits) {
      const std::string line = name_threads(numbers).append(": ").append(text);
      const auto same = std::find_if(all_lines.begin(), all_lines.end(), [&](const Line& one) {
        return one.rank == rank && one.process == name && one.text == line;
      });
      const auto number = static_cast<std::uint32_t>(at) + 1;
      if (same == all_lines.end()) {
        all_lines.push_back({rank, name, line, namesakes.size(), {number}});
      } else {
        same->numbers.push_back(number);
      }
    }
  }
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> found;  // the text, and its ranks
  for (const Line& line : all_lines) {
    const bool are_all = line.numbers.size() == line.alike;
    const std::string which = are_all ? "" : " (" + name_numbers(line.numbers) + ")";
    const std::string text =
        (line.process.empty() ? "" : ", process '" + line.process + "'" + which) + line.text;
    const auto same =
        std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.first == text; });
    if (same == found.end()) {
      found.emplace_back(text, std::vector{line.rank});
    } else if (same->second.back() != line.rank) {
      same->second.push_back(line.rank);
    }
  }
  for (auto& [text, of_ranks] : found) std::sort(of_ranks.begin(), of_ranks.end());
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string all;
  for (std::size_t i = 0; i < found.size() && i < most_lines; ++i)
    all += "  " + name_ranks(found[i].second) + found[i].first + "\n";
  if (found.size() > most_lines) all += "  and " + std::to_string(found.size() - most_lines) + " more\n";
  return all;
}

}  // namespace apenet
