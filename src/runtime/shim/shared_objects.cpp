#include "runtime/shim/shared_objects.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/process_files.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;

// Memory of a file, from a place in it on.
struct FilePosition {
  std::uint64_t file = 0;  // device and inode, never 0; 0: the memory is of this process only
  std::uint64_t at = 0;
  bool is_named = false;  // others may yet open the file
};

// A line of /proc/PID/maps: "begin-end perms offset device inode path".
struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  FilePosition place;
};

std::uint64_t take_number(std::string_view& line, int base) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), number, base);
  line.remove_prefix(std::min(static_cast<std::size_t>(parsed.ptr - line.data()) + 1, line.size()));
  return number;
}

Mapping parse_mapping(std::string_view line) {
  constexpr int hex = 16;
  Mapping one;
  one.begin = take_number(line, hex);
  one.end = take_number(line, hex);
  constexpr std::size_t permission_bytes = 5;
  if (line.size() < permission_bytes || line[3] != 's') return one;
  line.remove_prefix(permission_bytes);
  one.place.at = take_number(line, hex);
  const std::uint64_t major = take_number(line, hex);
  const std::uint64_t minor = take_number(line, hex);
  const std::uint64_t inode = take_number(line, 10);
  one.place.file = mixed(mixed(major + 1, minor), inode) | 1U;
  // The host shows all memory of System V so, and others may attach it by its key.
  const bool is_of_key = line.find("/SYSV") != std::string_view::npos;
  one.place.is_named = is_of_key || !line.ends_with(" (deleted)");
  return one;
}

// Calls visit(mapping) for each of the process until it returns false.
template <typename Visit>
void for_mappings(int process, Visit visit) {
  ProcessPath path;
  std::snprintf(path.data(), path.size(), "/proc/%d/maps", process);
  const int file = host_call(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::array<char, 4096> text;
  std::size_t kept = 0;
  bool goes_on = true;
  for (int bytes = 1; goes_on && bytes > 0;) {
    bytes = host_call(SYS_read, file, text.data() + kept, text.size() - kept);
    std::string_view left(text.data(), kept + static_cast<std::size_t>(std::max(bytes, 0)));
    for (std::size_t end = left.find('\n'); goes_on && end != std::string_view::npos; end = left.find('\n')) {
      goes_on = visit(parse_mapping(left.substr(0, end)));
      left.remove_prefix(end + 1);
    }
    kept = left.size() == text.size() ? 0 : left.size();
    std::memmove(text.data(), left.data(), kept);
  }
  host_call(SYS_close, file, 0);
}

std::uint64_t began_ticks(int process) {
  ProcessText buffer;
  const std::string_view began = stat_field(read_of(process, process, "stat", buffer), 22);
  return number_at<std::uint64_t>(began.data(), began.data() + began.size());
}

// Whether a process that is newer than the run, and not of this order, has mapped the file.
bool is_mapped_elsewhere(std::uint64_t file) {
  const ipc::Client* const client = ipc::Client::known();
  if (client == nullptr) return true;
  const std::uint64_t run_began_ticks = began_ticks(static_cast<int>(client->header().simulator_id));
  bool is_mapped = false;
  for_numbers(ProcessPath{"/proc"}, [&](int process) {
    if (is_mapped || process == getpid() || began_ticks(process) < run_began_ticks) return;
    if (thread_order().knows_process(static_cast<std::uint32_t>(process))) return;
    for_mappings(process, [&](const Mapping& one) {
      is_mapped = one.place.file == file;
      return !is_mapped;
    });
  });
  return is_mapped;
}

// The answer is asked for again once a process has begun or ended.
bool is_mapped_in_order(std::uint64_t file) {
  const std::uint64_t question = mixed(file, thread_order().process_changes()) & ~std::uint64_t{1};
  std::atomic<std::uint64_t>& known = thread_order().answer_for_memory(file);
  if ((known | 1U) != (question | 1U)) known = question | (is_mapped_elsewhere(file) ? 0U : 1U);
  return (known & 1U) != 0;
}

// What the process has found of addresses; memory that is unmapped ends it.
struct KnownObject {
  std::atomic<const void*> object{nullptr};
  std::atomic<std::uint64_t> file{0};
  std::atomic<std::uint64_t> at{0};
  std::atomic<bool> is_named{false};
};
constexpr std::size_t most_known = 256;

struct KnownObjects {
  std::array<KnownObject, most_known> all;
  std::atomic<std::uint32_t> next{0};
};

KnownObjects& known_objects() {
  static constinit KnownObjects value;
  return value;
}

void forget_known() {
  for (KnownObject& one : known_objects().all) one.object = nullptr;
}

std::optional<FilePosition> find_known(const void* object) {
  for (const KnownObject& one : known_objects().all) {
    if (one.object != object) continue;
    const FilePosition place{.file = one.file, .at = one.at, .is_named = one.is_named};
    if (one.object == object) return place;  // nobody has changed it meanwhile
  }
  return {};
}

FilePosition find_place(const void* object) {
  if (const std::optional<FilePosition> known = find_known(object)) return *known;
  const auto address = reinterpret_cast<std::uint64_t>(object);
  FilePosition place;
  for_mappings(getpid(), [&](const Mapping& one) {
    if (address < one.begin || address >= one.end) return true;
    place = one.place;
    place.at += address - one.begin;
    return false;
  });
  KnownObject& entry = known_objects().all[known_objects().next++ % most_known];
  entry.object = nullptr;
  entry.file = place.file;
  entry.at = place.at;
  entry.is_named = place.is_named;
  entry.object = object;
  return place;
}

const void* find_name(const void* object) {
  const FilePosition place = find_place(object);
  if (place.file == 0) return object;
  if (place.is_named && !thread_order().has_processes()) return nullptr;
  if (!is_mapped_in_order(place.file)) return nullptr;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<const void*>(mixed(place.file, place.at) | ipc::OrderObject::shared_mark);
}

}  // namespace

const void* name_of_shared(const void* object) {
  if (!thread_order().is_shared() || !thread_order().has_started()) return nullptr;
  const int error = errno;
  const void* const name = find_name(object);
  errno = error;
  return name;
}

bool others_may_come(const void* object) {
  const int error = errno;
  const FilePosition place = find_place(object);
  errno = error;
  return place.file != 0 && place.is_named;
}

ObjectUse::ObjectUse(ipc::OrderedThread* own, const volatile void* object, bool is_shared)
    : name_(const_cast<const void*>(object)), own_(own) {
  if (own_ != nullptr) thread_order().enter(*own_);
  if (is_shared) name_ = name_of_shared(name_);
  if (name_ == nullptr) end();
}

void ObjectUse::end() {
  if (own_ == nullptr) return;
  const int error = errno;
  thread_order().leave(*own_, !is_in_call());
  own_ = nullptr;
  errno = error;
}

APENET_EXPORT int munmap(void* memory, std::size_t bytes) noexcept {
  static const auto real = next<int (*)(void*, std::size_t)>("munmap");
  forget_known();
  return real(memory, bytes);
}

APENET_EXPORT int shmdt(const void* memory) noexcept {
  static const auto real = next<int (*)(const void*)>("shmdt");
  forget_known();
  return real(memory);
}

APENET_EXPORT int sem_close(sem_t* semaphore) noexcept {
  static const auto real = next<int (*)(sem_t*)>("sem_close");
  forget_known();
  return real(semaphore);
}

}  // namespace apenet::shim
