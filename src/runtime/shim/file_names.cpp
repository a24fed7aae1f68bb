#include "runtime/shim/file_names.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/process_files.hpp"

namespace apenet::shim {
namespace {

using ipc::FileKind;
using ipc::FileName;
using ipc::host_call;
using ipc::MadeFile;

std::string_view info_of(int process, int file, ProcessText& buffer) {
  ProcessPath path;
  std::snprintf(path.data(), path.size(), "/proc/%d/fdinfo/%d", process, file);
  return bytes_of(path, buffer);
}

// The number of an eventfd in what fdinfo shows; 0 if it shows none.
std::uint64_t eventfd_number(std::string_view info) {
  constexpr std::string_view key = "eventfd-id: ";
  const std::size_t at = info.find(key);
  if (at == std::string_view::npos) return 0;
  // The host counts from zero.
  return number_at<std::uint64_t>(info.data() + at + key.size(), info.data() + info.size()) + 1;
}

std::int64_t ticks_since_host_start() {
  timespec now{};
  host_call(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
  const std::int64_t per_s = sysconf(_SC_CLK_TCK);
  return now.tv_sec * per_s + now.tv_nsec * per_s / 1'000'000'000;
}

// Whether a link of /proc, as "pipe:[12]", names the file.
bool names(std::string_view link, std::string_view kind, std::uint64_t number) {
  if (number == 0 || !link.starts_with(kind)) return false;
  return number_at<std::uint64_t>(link.data() + kind.size(), link.data() + link.size()) == number;
}

bool has_file(int process, int descriptor, const MadeFile& made) {
  ProcessText buffer;
  const std::string_view link = link_of(process, static_cast<std::uint64_t>(descriptor), buffer);
  switch (made.kind) {
    case FileKind::pipe:
      return names(link, "pipe:[", made.number);
    case FileKind::socket:
      return names(link, "socket:[", made.number) || names(link, "socket:[", made.other);
    case FileKind::eventfd: {
      if (!link.starts_with("anon_inode:[eventfd]")) return false;
      ProcessText info;
      return eventfd_number(info_of(process, descriptor, info)) == made.number;
    }
    default:
      return true;
  }
}

}  // namespace

FileName name_of_file(int file) {
  struct stat status {};
  if (host_call(SYS_fstat, file, &status) != 0) return {};
  if (S_ISFIFO(status.st_mode)) return {FileKind::pipe, status.st_dev, status.st_ino};
  if (S_ISSOCK(status.st_mode)) return {FileKind::socket, status.st_dev, status.st_ino};
  if ((status.st_mode & S_IFMT) != 0) return {};
  ProcessText buffer;
  const std::uint64_t number = eventfd_number(info_of(getpid(), file, buffer));
  return number == 0 ? FileName{} : FileName{FileKind::eventfd, status.st_dev, number};
}

void note_made(MadeFile& made, int file, int other) {
  const FileName name = name_of_file(file);
  made.kind = FileKind::none;
  made.device = name.device;
  made.number = name.number;
  made.other = other < 0 ? 0 : name_of_file(other).number;
  made.made_ticks = ticks_since_host_start();
  made.kind = name.kind;
}

bool is_held_elsewhere(const MadeFile& made, bool counts_order) {
  bool is_held = false;
  for_numbers(ProcessPath{"/proc"}, [&](int process) {
    if (is_held || process == getpid()) return;
    if (!counts_order && thread_order().acts_in_order(static_cast<std::uint32_t>(process))) return;
    ProcessText buffer;
    const std::string_view began = stat_field(read_of(process, process, "stat", buffer), 22);
    if (number_at<std::int64_t>(began.data(), began.data() + began.size()) < made.made_ticks) return;
    ProcessPath folder;
    std::snprintf(folder.data(), folder.size(), "/proc/%d/fd", process);
    for_numbers(folder, [&](int descriptor) { is_held = is_held || has_file(process, descriptor, made); });
  });
  return is_held;
}

bool is_nonblocking(int file) {
  return (host_call(SYS_fcntl, file, F_GETFL) & O_NONBLOCK) != 0;
}

}  // namespace apenet::shim
