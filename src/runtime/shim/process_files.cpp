#include "runtime/shim/process_files.hpp"

#include <algorithm>
#include <cstdio>

namespace apenet::shim {

using ipc::host_call;

std::string_view bytes_of(const ProcessPath& path, ProcessText& buffer) {
  const int fd = host_call(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const int bytes = host_call(SYS_read, fd, buffer.data(), buffer.size());
  host_call(SYS_close, fd, 0);
  return {buffer.data(), static_cast<std::size_t>(std::max(bytes, 0))};
}

std::string_view read_of(int process, int thread, const char* file, ProcessText& buffer) {
  ProcessPath path;
  std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/%s", process, thread, file);
  return bytes_of(path, buffer);
}

std::string_view link_of(int process, std::uint64_t fd, ProcessText& buffer) {
  ProcessPath path;
  std::snprintf(path.data(), path.size(), "/proc/%d/fd/%llu", process, static_cast<unsigned long long>(fd));
  const int bytes = ipc::read_link(path.data(), buffer.data(), buffer.size());
  return {buffer.data(), static_cast<std::size_t>(std::max(bytes, 0))};
}

// Searches for the last ')', because the program's name may contain any character.
std::string_view stat_field(std::string_view text, int number) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return {};
  text.remove_prefix(std::min(name_end + 2, text.size()));
  for (int field = 3; field < number && !text.empty(); ++field)
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  return text.substr(0, text.find(' '));
}

}  // namespace apenet::shim
