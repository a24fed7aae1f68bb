// Starts of programs: exec, posix_spawn, and what the C library builds on them.
//
// Each program that a process of the run starts is to find the shim, and the settings of the run, in its
// environment, even if its starter clears the environment or sets its own. So these functions pass on what is
// missing (run_environment.hpp). A program into which no shim can be loaded is noted for the error that ends
// the run if it loses them (ipc/unfollowed.hpp).
//
// All but system(), popen() and wordexp() may be called in the child of a vfork, in a signal handler, and in
// the child of a process with threads: they make only system calls, and nothing that they leave behind in the
// parent's memory matters.
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>
#include <wordexp.h>

#include <alloca.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/ipc/unfollowed.hpp"
#include "runtime/shim/child_processes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/cycle_counter.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/preload_order.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/run_environment.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using Arguments = char* const*;

// The C library's functions, looked up when the shim is loaded: the loader's lock may be held later.
struct Real {
  int (*execve)(const char*, Arguments, Arguments) = nullptr;
  int (*execvpe)(const char*, Arguments, Arguments) = nullptr;
  int (*fexecve)(int, Arguments, Arguments) = nullptr;
  decltype(&::posix_spawn) posix_spawn = nullptr;
  decltype(&::posix_spawnp) posix_spawnp = nullptr;
  int (*wordexp)(const char*, wordexp_t*, int) = nullptr;

  void find() {
    find_one(execve, "execve");
    find_one(execvpe, "execvpe");
    find_one(fexecve, "fexecve");
    find_one(posix_spawn, "posix_spawn");
    find_one(posix_spawnp, "posix_spawnp");
    find_one(wordexp, "wordexp");
  }

 private:
  template <typename Function>
  static void find_one(Function& function, const char* name) {
    function = next<Function>(name).get();
  }
};

constinit Real real_functions;

// Initialisers of other libraries may start programs before the shim's own has run.
const Real& host_functions() {
  if (real_functions.execve == nullptr) real_functions.find();
  return real_functions;
}

__attribute__((constructor)) void find_functions() {
  real_functions.find();
}

const char* own_variable(std::string_view name) {
  for (char** entry = __environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=')
      return *entry + name.size() + 1;
  }
  return nullptr;
}

constexpr std::size_t longest_path = 4096;
using Path = std::array<char, longest_path>;

bool join(Path& path, std::string_view folder, std::string_view file) {
  if (folder.size() + file.size() + 2 > path.size()) return false;
  char* end = std::copy(folder.begin(), folder.end(), path.data());
  if (!folder.empty()) *end++ = '/';
  *std::copy(file.begin(), file.end(), end) = '\0';
  return true;
}

// Whether the texts can be read, or there is no list. The host reports those that cannot.
bool are_texts(Arguments texts) {
  for (; texts != nullptr; ++texts) {
    if (!ipc::is_readable(texts, sizeof *texts)) return false;
    if (*texts == nullptr) return true;
    if (!ipc::is_readable(*texts, 1)) return false;
  }
  return true;
}

bool are_texts(const char* path, Arguments arguments, Arguments variables) {
  return ipc::is_readable_or_none(path) && are_texts(arguments) && are_texts(variables);
}

// Whether the program is the loader, asked for something about a program that it does not run.
bool only_asks_loader(Arguments arguments) {
  if (arguments == nullptr || arguments[0] == nullptr) return false;
  const std::string_view program = arguments[0];
  const std::string_view name = program.substr(program.rfind('/') + 1);
  if (!name.starts_with("ld-linux") && !name.starts_with("ld.so")) return false;
  constexpr std::array<std::string_view, 4> questions = {"--list", "--verify", "--version", "--help"};
  const std::string_view option = arguments[1] == nullptr ? std::string_view() : arguments[1];
  return std::any_of(questions.begin(), questions.end(),
                     [option](std::string_view question) { return option.starts_with(question); });
}

// The note that the rank starts a program into which no shim can be loaded, or which is not to belong to the
// run; taken back if the start fails.
class StartNote {
 public:
  // The program is path.
  explicit StartNote(const char* path) { check_file(path); }
  // As execvp() finds it.
  struct Searched {
    const char* file;
  };
  explicit StartNote(Searched searched) { search(searched.file); }
  ~StartNote() {
    if (!is_written_ && !is_recorded_) return;
    const int error = errno;
    if (is_written_) write(nullptr, nullptr);
    if (is_recorded_) restore_own_image();
    errno = error;
  }
  StartNote(const StartNote&) = delete;
  StartNote& operator=(const StartNote&) = delete;

  // A shim will be loaded into it.
  [[nodiscard]] bool is_followed(const RunEnvironment& environment) const {
    return !is_written_ && !environment.is_outside();
  }
  // Call before this process becomes the program.
  void record(const RunEnvironment& environment, Arguments arguments) {
    if (!is_followed(environment)) leave_order_for_program();
    const std::uint32_t process_id = ipc::own_process_id();
    is_recorded_ = record_of(process_id, environment, arguments);
    if (is_recorded_ || !is_followed(environment) || !is_found_) return;
    record_image(image_, process_id, ipc::ImageState::starting);
    is_recorded_ = true;
  }
  // Call when another process, child, has been started as it if result is 0.
  int keep(int result, pid_t child, const RunEnvironment& environment, Arguments arguments) {
    if (result != 0) return result;
    record_of(static_cast<std::uint32_t>(child), environment, arguments);
    is_written_ = false;
    return result;
  }

 private:
  bool record_of(std::uint32_t process_id, const RunEnvironment& environment, Arguments arguments) {
    const bool is_outside = environment.is_outside() || only_asks_loader(arguments);
    if (!is_outside && !is_written_) return false;
    if (!is_outside && is_tracer_) {
      note_tracer(image_);
      return false;
    }
    record_image(image_, process_id, is_outside ? ipc::ImageState::outside : ipc::ImageState::unfollowed);
    return true;
  }

  [[gnu::noinline]] void check_file(const char* path) {
    if (is_null(path) || kept_value(ipc::mapping_variable) == nullptr) return;
    const int error = errno;
    image_ = describe_image(path);
    is_found_ = true;
    const bool is_child = clock_client() != nullptr;
    if (const char* why = is_child ? ipc::why_unfollowed_child(path) : ipc::why_unfollowed(path)) {
      is_tracer_ = ipc::is_tracer(path);
      if (!is_tracer_) write(path, why);
      is_written_ = true;
    }
    errno = error;
  }

  [[gnu::noinline]] void search(const char* file) {
    if (is_null(file) || kept_value(ipc::mapping_variable) == nullptr) return;
    if (std::strchr(file, '/') != nullptr) return check_file(file);
    const char* folders = own_variable("PATH");
    Path path;
    for_parts(folders != nullptr ? folders : "/bin:/usr/bin", ":", [&](std::string_view folder) {
      if (!join(path, folder, file) || !ipc::is_executable(path.data())) return true;
      check_file(path.data());
      return false;
    });
  }

  static void write(const char* path, const char* why) {
    char text[ipc::unfollowed_bytes] = {};
    if (path != nullptr) ipc::describe_unfollowed(text, path, why);
    const std::uint32_t rank = own_rank();
    if (rank != UINT32_MAX) ipc::note_unfollowed(kept_value(ipc::mapping_variable), rank, text);
  }

  bool is_written_ = false;
  bool is_recorded_ = false;
  bool is_found_ = false;  // the program, whose image is described
  bool is_tracer_ = false;
  ipc::ImageRecord image_;
};

// The process itself becomes another program, unless it is the child of a vfork, which uses its memory.
class Replacement {
 public:
  explicit Replacement(bool is_followed) {
    ipc::Client* client = pacing_client();
    const auto process = static_cast<std::uint32_t>(ipc::host_call(SYS_getpid, 0, 0));
    if (client == nullptr || client->block().identity.process_id != process) return;
    VirtualTimers::of_process().leave(*client, is_followed);
    left_ = client;
  }
  ~Replacement() {
    if (left_ == nullptr) return;
    const int error = errno;
    VirtualTimers::of_process().take_back(*left_);
    errno = error;
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

 private:
  ipc::Client* left_ = nullptr;
};

// The start of a program.
class Start {
 public:
  Start() {
    note_process_start();
    note_library_start();
  }

 private:
  Untrapped during_;
};

int execute(const char* path, Arguments arguments, Arguments variables) {
  if (!are_texts(path, arguments, variables)) return host_functions().execve(path, arguments, variables);
  StartNote note(path);
  const Start start;
  const RunEnvironment environment(variables);
  note.record(environment, arguments);
  const Replacement replacement(note.is_followed(environment));
  return host_functions().execve(path, arguments, environment.get());
}

int execute_searched(const char* file, Arguments arguments, Arguments variables) {
  StartNote note(StartNote::Searched{file});
  const Start start;
  const RunEnvironment environment(variables);
  note.record(environment, arguments);
  const Replacement replacement(note.is_followed(environment));
  return host_functions().execvpe(file, arguments, environment.get());
}

// The file that a descriptor stands for.
bool find_path(Path& path, int descriptor) {
  Path link{};
  char* end = link.data();
  for (const char letter : std::string_view("/proc/self/fd/")) *end++ = letter;
  *std::to_chars(end, end + 12, descriptor).ptr = '\0';
  const int bytes = ipc::read_link(link.data(), path.data(), path.size() - 1);
  path[bytes < 0 ? 0 : static_cast<std::size_t>(bytes)] = '\0';
  return bytes > 0;
}

int execute_descriptor(int descriptor, Arguments arguments, Arguments variables) {
  if (!are_texts(nullptr, arguments, variables))
    return host_functions().fexecve(descriptor, arguments, variables);
  Path path;
  StartNote note(find_path(path, descriptor) ? path.data() : nullptr);
  const Start start;
  const RunEnvironment environment(variables);
  note.record(environment, arguments);
  const Replacement replacement(note.is_followed(environment));
  return host_functions().fexecve(descriptor, arguments, environment.get());
}

int execute_at(int folder, const char* name, Arguments arguments, Arguments variables, int flags) {
  const auto execute_by_host = [&](Arguments given) {
    return ipc::host_call(SYS_execveat, folder, name, reinterpret_cast<std::uint64_t>(arguments), given,
                          static_cast<std::uint64_t>(flags));
  };
  if (!are_texts(name, arguments, variables)) return execute_by_host(variables);
  Path path;
  Path file;
  const char* program = nullptr;
  if (is_null(name) || *name == '\0') {
    if (find_path(path, folder)) program = path.data();
  } else if (*name == '/' || folder == AT_FDCWD) {
    program = name;
  } else if (find_path(path, folder) && join(file, path.data(), name)) {
    program = file.data();
  }
  StartNote note(program);
  const Start start;
  const RunEnvironment environment(variables);
  note.record(environment, arguments);
  const Replacement replacement(note.is_followed(environment));
  return execute_by_host(environment.get());
}

// Calls run(arguments, rest) with the arguments of execl() and its like, up to the null pointer.
template <typename Run>
int with_list(const char* first, va_list list, Run run) {
  va_list counted;
  va_copy(counted, list);
  std::size_t count = 1;
  if (first != nullptr) {
    while (va_arg(counted, char*) != nullptr) ++count;
    ++count;
  }
  va_end(counted);
  // On the stack, as in the C library, because there may be no heap.
  auto** arguments = static_cast<char**>(alloca(count * sizeof(char*)));
  arguments[0] = const_cast<char*>(first);
  for (std::size_t i = 1; i < count; ++i) arguments[i] = va_arg(list, char*);
  return run(arguments, list);
}

}  // namespace

APENET_EXPORT int execve(const char* path, char* const* arguments, char* const* variables) noexcept {
  return execute(path, arguments, variables);
}

APENET_EXPORT int execv(const char* path, char* const* arguments) noexcept {
  return execute(path, arguments, __environ);
}

APENET_EXPORT int execvpe(const char* file, char* const* arguments, char* const* variables) noexcept {
  return execute_searched(file, arguments, variables);
}

APENET_EXPORT int execvp(const char* file, char* const* arguments) noexcept {
  return execute_searched(file, arguments, __environ);
}

APENET_EXPORT int execveat(int folder, const char* path, char* const* arguments, char* const* variables,
                           int flags) noexcept {
  return execute_at(folder, path, arguments, variables, flags);
}

APENET_EXPORT int fexecve(int descriptor, char* const* arguments, char* const* variables) noexcept {
  return execute_descriptor(descriptor, arguments, variables);
}

APENET_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const int result =
      with_list(first, list, [&](char** arguments, auto&&) { return execute(path, arguments, __environ); });
  va_end(list);
  return result;
}

APENET_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const int result = with_list(
      first, list, [&](char** arguments, auto&&) { return execute_searched(file, arguments, __environ); });
  va_end(list);
  return result;
}

APENET_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  const int result = with_list(first, list, [&](char** arguments, va_list rest) {
    return execute(path, arguments, va_arg(rest, char* const*));
  });
  va_end(list);
  return result;
}

APENET_EXPORT int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const* arguments,
                              char* const* variables) {
  if (!are_texts(path, arguments, variables))
    return host_functions().posix_spawn(process, path, actions, attributes, arguments, variables);
  StartNote note(path);
  const Start start;
  const RunEnvironment environment(variables);
  pid_t child = 0;
  NewProcess fresh(note.is_followed(environment));
  const int result =
      host_functions().posix_spawn(&child, path, actions, attributes, arguments, environment.get());
  if (result == 0) fresh.note(child);
  if (result == 0 && process != nullptr) *process = child;
  return note.keep(result, child, environment, arguments);
}

APENET_EXPORT int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const* arguments,
                               char* const* variables) {
  StartNote note(StartNote::Searched{file});
  const Start start;
  const RunEnvironment environment(variables);
  pid_t child = 0;
  NewProcess fresh(note.is_followed(environment));
  const int result =
      host_functions().posix_spawnp(&child, file, actions, attributes, arguments, environment.get());
  if (result == 0) fresh.note(child);
  if (result == 0 && process != nullptr) *process = child;
  return note.keep(result, child, environment, arguments);
}

APENET_EXPORT int wordexp(const char* words, wordexp_t* result, int flags) {
  const Start start;
  const OwnRunEnvironment environment;
  return host_functions().wordexp(words, result, flags);
}

int host_system(const char* command) {
  static const auto real = next<int (*)(const char*)>("system");
  const Start start;
  const OwnRunEnvironment environment;
  const HostPace pace(pacing_client());
  return real(command);
}

FILE* host_popen(const char* command, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("popen");
  const Start start;
  const OwnRunEnvironment environment;
  return real(command, mode);
}

// As the C library's syscall(), of SYS_execve, SYS_execveat, SYS_exit and SYS_exit_group (system_calls.cpp).
extern "C" __attribute__((visibility("hidden"))) long apenet_start_call(long number, long first, long second,
                                                                        long third, long fourth, long fifth) {
  if (number == SYS_exit_group) _exit(static_cast<int>(first));
  if (number == SYS_exit) leave_thread(static_cast<int>(first));
  const auto texts = [](long address) { return reinterpret_cast<char* const*>(address); };
  if (number == SYS_execve) {
    return execute(reinterpret_cast<const char*>(first), texts(second), texts(third));
  }
  return execute_at(static_cast<int>(first), reinterpret_cast<const char*>(second), texts(third),
                    texts(fourth), static_cast<int>(fifth));
}

}  // namespace apenet::shim
