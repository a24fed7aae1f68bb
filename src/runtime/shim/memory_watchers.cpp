#include "runtime/shim/memory_watchers.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace apenet::shim {
namespace {

struct WatcherCode {
  std::atomic<std::uint64_t> begin{0};
  std::atomic<std::uint64_t> bytes{0};  // 0: there is none
};

// A process may have two versions of one library.
using WatcherCodes = std::array<WatcherCode, 4>;

WatcherCodes& watcher_codes() {
  static constinit WatcherCodes value{};
  return value;
}

bool is_watcher(const char* path) {
  const std::string_view whole = path != nullptr ? path : "";
  const std::string_view name = whole.substr(whole.rfind('/') + 1);
  return name.starts_with("libfabric") || name.starts_with("libucm");
}

int note_watcher(dl_phdr_info* info, std::size_t /*bytes*/, void* data) {
  std::size_t& count = *static_cast<std::size_t*>(data);
  if (!is_watcher(info->dlpi_name) || count == watcher_codes().size()) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    WatcherCode& code = watcher_codes()[count++];
    code.begin = info->dlpi_addr + part.p_vaddr;
    code.bytes = part.p_memsz;
    break;
  }
  return 0;
}

}  // namespace

void find_memory_watchers() {
  std::size_t count = 0;
  dl_iterate_phdr(note_watcher, &count);
}

bool is_in_memory_watcher(const void* code) {
  const auto address = reinterpret_cast<std::uint64_t>(code);
  return std::any_of(watcher_codes().begin(), watcher_codes().end(), [address](const WatcherCode& watcher) {
    return address - watcher.begin.load(std::memory_order_relaxed) <
           watcher.bytes.load(std::memory_order_relaxed);
  });
}

}  // namespace apenet::shim
