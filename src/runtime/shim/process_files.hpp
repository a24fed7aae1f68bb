// What /proc shows of a process, read without the heap, locks or a change of errno's meaning to the caller:
// sleeps of the program read them, also in handlers of signals, on small stacks.
#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "runtime/ipc/host_call.hpp"

namespace apenet::shim {

using ProcessPath = std::array<char, 96>;
using ProcessText = std::array<char, 1024>;

// The first bytes of a file; empty if it cannot be read.
[[nodiscard]] std::string_view bytes_of(const ProcessPath& path, ProcessText& buffer);
// Likewise, of the file of this name in a thread's folder of /proc.
[[nodiscard]] std::string_view read_of(int process, int thread, const char* file, ProcessText& buffer);
// What a descriptor of a process stands for: "pipe:[NUMBER]".
[[nodiscard]] std::string_view link_of(int process, std::uint64_t fd, ProcessText& buffer);
// Returns field `number` of a stat file, numbered as in proc(5), from 3.
[[nodiscard]] std::string_view stat_field(std::string_view text, int number);

template <typename Number>
[[nodiscard]] Number number_at(const char* begin, const char* end) {
  Number number = 0;
  return std::from_chars(begin, end, number).ec == std::errc() ? number : 0;
}

// Calls visit(number) for each entry of a folder whose name is a number.
template <typename Visit>
void for_numbers(const ProcessPath& folder, Visit visit) {
  const int fd = ipc::host_call(SYS_openat, AT_FDCWD, folder.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  alignas(dirent64) ProcessText buffer;
  for (int bytes = 1; bytes > 0;) {
    bytes = ipc::host_call(SYS_getdents64, fd, buffer.data(), buffer.size());
    for (int at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(&buffer[static_cast<std::size_t>(at)]);
      const char* const name = entry->d_name;
      const char* const end = buffer.data() + at + entry->d_reclen;
      at += entry->d_reclen;
      if (name[0] >= '0' && name[0] <= '9') visit(number_at<int>(name, end));
    }
  }
  ipc::host_call(SYS_close, fd, 0);
}

}  // namespace apenet::shim
