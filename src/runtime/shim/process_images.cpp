// Records of the images of this process and of those that it starts.
//
// Each process of the run makes a record when the shim is loaded, and marks it when it exits. A process that
// has become another program by a system call of its own ends without this mark, and a child that was made
// and has become a program by system calls alone has no record at all: whoever waits for such a process tells
// the simulator. A launcher that makes even these calls itself is recognised at its exit: the kernel counts
// page faults of children that the C library has not started. docs/reference/wrappers.md says what remains.
#include "runtime/shim/process_images.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/shim/child_processes.hpp"
#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/mpi_world.hpp"
#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/own_mpi.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/run_environment.hpp"
#include "runtime/shim/virtual_timers.hpp"

extern "C" {
// The C library has made, or is making, a process for this one; also written by the assembler code below.
__attribute__((visibility("hidden"))) constinit std::atomic<char> apenet_has_started{0};
}

namespace apenet::shim {
namespace {

using ipc::ImageRecord;
using ipc::ImageState;
using ipc::OrderedThread;

constinit ipc::ImageRecords records;
constinit std::atomic<std::uint32_t> faults_at_begin{0};
constinit std::atomic<int> own_process{0};
constinit std::atomic<bool> records_alarm{false};

std::string_view own_path() {
  const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return path == nullptr ? std::string_view() : path;
}

std::int64_t host_alarm_ns() {
  itimerval alarm{};
  ipc::host_call(SYS_getitimer, ITIMER_REAL, &alarm);
  if (alarm.it_interval.tv_sec != 0 || alarm.it_interval.tv_usec != 0) return INT64_MAX;
  const std::int64_t left_ns = alarm.it_value.tv_sec * 1'000'000'000 + alarm.it_value.tv_usec * 1000;
  return left_ns == 0 ? 0 : host_now_ns() + left_ns;
}

ImageRecord own_record(ImageState state) {
  ImageRecord record{.state = state, .process_id = ipc::own_process_id(), .rank = own_rank()};
  ipc::host_call(SYS_prctl, PR_GET_NAME, record.name);
  record.alarm_ns = host_alarm_ns();
  records_alarm = record.alarm_ns != 0;
  ipc::copy_end(record.path, own_path());
  return record;
}

void note_exit() {
  if (!records.is_found()) return;
  const int before = errno;
  if (ipc::Client::is_member()) thread_order().tell_of_end();
  const bool is_raw = apenet_has_started.load() == 0 && ipc::child_faults() > faults_at_begin.load();
  records.write(own_record(is_raw ? ImageState::starts_raw : ImageState::ended));
  // The child of a vfork that starts no program shares the memory of its parent, and is a start of the C
  // library.
  if (ipc::host_call(SYS_getpid, 0, 0) != own_process.load()) apenet_has_started = 1;
  errno = before;
}

void note_end() {
  note_end_of_start();
  if (ipc::Client::is_member() && apenet_socket_process_ends != nullptr) apenet_socket_process_ends();
  note_exit();
}

[[noreturn]] void leave(int status) {
  if (is_paced) catch_up_pace(*ipc::Client::known());  // in a handler that has interrupted a wait
  note_end();
  for (;;) ipc::host_call(SYS_exit_group, status, 0);
}

// What is left in the C library's streams, which writes it past the shim.
void flush_streams() {
  OrderedThread* const own =
      ipc::Client::is_member() && thread_order().has_processes() ? ordered_thread() : nullptr;
  if (own == nullptr) return;
  const WaitingFileAction action(*own);
  next<int (*)(FILE*)>("fflush")(nullptr);
}

// A thread's clock may be ahead of its rank's, after waits in the order alone.
void bring_rank_to_end() {
  ipc::Client* const client = virtual_client();
  if (client != nullptr && !ipc::Client::is_member() && ordered_thread() != nullptr) client->sleep(0);
}

__attribute__((destructor)) void note_end_of_program() {
  flush_streams();
  bring_rank_to_end();
  note_end();
}

// The name of an object's file, in the folder of shared memory; empty if it is long.
class ObjectFile {
 public:
  ObjectFile(NamedObject kind, std::string_view name) {
    const std::string_view begin = kind == NamedObject::semaphore ? "sem." : "";
    name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
    if (begin.size() + name.size() > text_.size()) return;
    length_ = begin.copy(text_.data(), begin.size());
    length_ += name.copy(text_.data() + length_, name.size());
  }
  [[nodiscard]] std::string_view name() const { return {text_.data(), length_}; }

 private:
  std::array<char, ipc::MadeNames::name_bytes> text_{};
  std::size_t length_ = 0;
};

// A program may be started by a name that depends on the folder.
void write_path(ImageRecord& record, const char* path) {
  std::array<char, 4096> whole{};
  const std::string_view given = path;
  std::size_t length = 0;
  if (!given.starts_with('/')) {
    const int bytes = ipc::host_call(SYS_getcwd, whole.data(), static_cast<std::uint64_t>(whole.size() / 2));
    length = bytes > 0 ? static_cast<std::size_t>(bytes) : 1;
    whole[length - 1] = '/';
  }
  if (length + given.size() >= whole.size()) length = 0;
  if (given.size() >= whole.size()) return;
  std::copy(given.begin(), given.end(), whole.begin() + static_cast<std::ptrdiff_t>(length));
  ipc::copy_end(record.path, std::string_view(whole.data(), length + given.size()));
}

void begin_records() {
  const char* mapping = kept_value(ipc::mapping_variable);
  if (mapping == nullptr || records.is_found()) return;
  records.find(mapping);
  if (!records.is_found()) return;
  faults_at_begin = ipc::child_faults();
  record_own_image();
  if (has_own_mpi()) note_own_mpi();
  at_quick_exit([] { note_end(); });
  pthread_atfork([] { note_library_start(); }, nullptr,
                 [] {
                   faults_at_begin = 0;
                   apenet_has_started = 0;
                   record_own_image();
                 });
}

__attribute__((constructor)) void begin_process() {
  if (!learn_environment()) return;
  begin_records();
  follow_direct_calls();
  // A program that reads the counter before it makes any call that the shim sees.
  if (std::getenv("APENET_TRAP_TSC") != nullptr) ipc::Client::attached();
}

}  // namespace

std::uint32_t own_rank() {
  std::uint32_t rank = 0;
  for (const char* name : {ipc::rank_variable, "PMI_RANK", "OMPI_COMM_WORLD_RANK"}) {
    const char* text = kept_value(name);
    if (text == nullptr) continue;
    for (; *text >= '0' && *text <= '9'; ++text) rank = rank * 10 + static_cast<std::uint32_t>(*text - '0');
    return rank;
  }
  return UINT32_MAX;
}

void note_made(NamedObject kind, std::string_view name) {
  const ObjectFile file(kind, name);
  if (ipc::is_drawn_name(file.name())) records.note_made(own_rank(), file.name());
}

void note_removed(NamedObject kind, std::string_view name) {
  const ObjectFile file(kind, name);
  if (ipc::is_drawn_name(file.name())) records.forget_made(own_rank(), file.name());
}

void note_library_start() {
  apenet_has_started = 1;
}

ImageRecord describe_image(const char* path) {
  ImageRecord image;
  write_path(image, path);
  const std::string_view whole = path;
  const std::string_view name = whole.substr(whole.rfind('/') + 1).substr(0, sizeof image.name - 1);
  std::copy(name.begin(), name.end(), image.name);
  return image;
}

void record_image(ImageRecord& image, std::uint32_t process_id, ImageState state) {
  if (!records.is_found()) return;
  const int before = errno;
  image.state = state;
  image.process_id = process_id;
  image.rank = own_rank();
  const bool is_own = process_id == ipc::own_process_id();
  image.child_faults = is_own ? ipc::child_faults() : 0;
  image.alarm_ns = is_own ? host_alarm_ns() : 0;
  records.write(image);
  errno = before;
}

void note_tracer(const ImageRecord& image) {
  const std::uint32_t rank = own_rank();
  if (!records.is_found() || rank == UINT32_MAX) return;
  ipc::StartFinding finding{.kind = ipc::StartFindingKind::unfollowed};
  ipc::copy_end(finding.path, image.path);
  records.note(rank, finding);
}

bool has_recorded_alarm() {
  return records_alarm;
}

void record_own_image() {
  if (!records.is_found()) return;
  own_process = ipc::host_call(SYS_getpid, 0, 0);
  const int before = errno;
  records.write(own_record(ImageState::followed));
  errno = before;
}

void restore_own_image() {
  if (!records.is_found()) return;
  const int before = errno;
  records.write(own_record(ImageState::followed));
  errno = before;
}

// A run of one rank is what such a program expects.
void note_own_mpi() {
  const std::uint32_t rank = own_rank();
  if (!records.is_found() || records.process_count() == 1 || rank == UINT32_MAX) return;
  ipc::StartFinding finding{.kind = ipc::StartFindingKind::own_mpi};
  ipc::copy_end(finding.path, own_path());
  records.note(rank, finding);
}

// The process ends with its last thread; mostly the first one is that.
void leave_thread(int status) {
  if (ipc::host_call(SYS_gettid, 0, 0) == ipc::host_call(SYS_getpid, 0, 0)) {
    note_end();
  } else {
    end_own_life();
  }
  for (;;) ipc::host_call(SYS_exit, status, 0);
}

void note_reaped(pid_t child, int flags, bool has_exited) {
  if (!records.is_found()) return;
  // Debuggers also get the threads of what they trace, and the children of those.
  if (has_exited && (flags & (__WALL | __WCLONE)) != 0) return;
  const int before = errno;
  note_library_start();  // its page faults are known: each child is judged by itself
  const auto process_id = static_cast<std::uint32_t>(child);
  const ImageRecord record = records.read(process_id);
  ipc::StartFinding finding;
  switch (has_exited ? record.state : ImageState::ended) {
    case ImageState::unfollowed:
      finding.kind = ipc::StartFindingKind::unfollowed;
      ipc::copy_end(finding.path, record.path);
      break;
    case ImageState::unknown:
      finding.kind = ipc::StartFindingKind::raw;
      ipc::copy_end(finding.path, own_path());
      break;
    case ImageState::followed:
    case ImageState::starts_raw:
      finding.kind = ipc::StartFindingKind::raw;
      ipc::copy_end(finding.path, record.path);
      break;
    case ImageState::ended:
    case ImageState::outside:
    case ImageState::starting:
      break;
  }
  const std::uint32_t rank = own_rank();
  if (finding.kind != ipc::StartFindingKind::none && rank != UINT32_MAX) records.note(rank, finding);
  // Otherwise it would seem to have vanished.
  if (record.state == ImageState::followed) records.write(ImageRecord{.process_id = process_id});
  errno = before;
}

APENET_EXPORT void apenet_rank_named() {
  learn_environment();
  begin_records();
}

APENET_EXPORT void _exit(int status) {
  leave(status);
}

APENET_EXPORT void _Exit(int status) noexcept {
  leave(status);
}

// Defines a function after which this process may have no way to its record any more: what it becomes then is
// not asked for.
#define APENET_LAST_RECORD(result, name, parameters, arguments)                  \
  APENET_EXPORT result name parameters noexcept {                                \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name); \
    note_exit();                                                                 \
    const result done = real arguments;                                          \
    record_own_image();                                                          \
    return done;                                                                 \
  }

// The parent ends inside the C library's function.
APENET_LAST_RECORD(int, daemon, (int keeps_folder, int keeps_streams), (keeps_folder, keeps_streams))
APENET_LAST_RECORD(int, setuid, (uid_t user), (user))
APENET_LAST_RECORD(int, seteuid, (uid_t user), (user))
APENET_LAST_RECORD(int, setreuid, (uid_t real_user, uid_t user), (real_user, user))
APENET_LAST_RECORD(int, setresuid, (uid_t real_user, uid_t user, uid_t saved), (real_user, user, saved))
// The simulator knows processes by the numbers that they have for itself, so they get no others.
APENET_LAST_RECORD(int, unshare, (int flags), (flags & ~CLONE_NEWPID))
APENET_LAST_RECORD(int, chroot, (const char* path), (path))

namespace {

struct Cloned {
  int (*run)(void*);
  void* argument;
};

// The process that clone() has made, which may share the memory of its parent.
int run_cloned(void* given) {
  const Cloned own = *static_cast<const Cloned*>(given);
  if (records.is_found()) records.write(own_record(ImageState::followed));
  const int status = own.run(own.argument);
  if (records.is_found()) records.write(own_record(ImageState::ended));
  return status;
}

}  // namespace

APENET_EXPORT int clone(int (*run)(void*), void* stack, int flags, void* argument, ...) noexcept {
  static const auto real = next<int (*)(int (*)(void*), void*, int, void*, ...)>("clone");
  va_list rest;
  va_start(rest, argument);
  void* const parent_id = va_arg(rest, void*);
  void* const storage = va_arg(rest, void*);
  void* const child_id = va_arg(rest, void*);
  va_end(rest);
  // The host reports the error for a null pointer.
  if ((flags & CLONE_THREAD) != 0 || run == nullptr || stack == nullptr)
    return real(run, stack, flags, argument, parent_id, storage, child_id);
  note_library_start();
  constexpr std::uintptr_t alignment = 16;
  auto* const cloned = reinterpret_cast<Cloned*>(
      (reinterpret_cast<std::uintptr_t>(stack) & ~(alignment - 1)) - sizeof(Cloned));
  *cloned = {.run = run, .argument = argument};
  return real(run_cloned, cloned, flags & ~CLONE_NEWPID, cloned, parent_id, storage, child_id);
}

}  // namespace apenet::shim
