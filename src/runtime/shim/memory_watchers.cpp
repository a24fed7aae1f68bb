#include "runtime/shim/memory_watchers.hpp"
#include "runtime/shim/real.hpp"

#include <dlfcn.h>
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
using WatcherCodes = std::array<WatcherCode, 6>;

WatcherCodes& watcher_codes() {
  static constinit WatcherCodes value{};
  return value;
}

struct Search {
  std::size_t count = 0;
  const char* open_mpi =
      nullptr;  // path of the library with the function that Open MPI lets the allocator call
};

void note_code(Search& search, std::uint64_t begin, std::uint64_t bytes) {
  if (search.count == watcher_codes().size()) return;
  WatcherCode& code = watcher_codes()[search.count++];
  code.begin = begin;
  code.bytes = bytes;
}

int note_library(dl_phdr_info* info, std::size_t /*bytes*/, void* data) {
  Search& search = *static_cast<Search*>(data);
  const std::string_view whole = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const std::string_view name = whole.substr(whole.rfind('/') + 1);
  if (name.starts_with("libopen-pal")) search.open_mpi = info->dlpi_name;
  if (!name.starts_with("libfabric") && !name.starts_with("libucm")) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    note_code(search, info->dlpi_addr + part.p_vaddr, part.p_memsz);
    break;
  }
  return 0;
}

// The other locks of this library are of the order.
void note_hook_of_open_mpi(Search& search) {
  void* const library = dlopen(search.open_mpi, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  Dl_info place{};
  void* symbol = nullptr;
  void* const hook = host_symbol(library, "opal_mem_hooks_release_hook");
  if (hook != nullptr && dladdr1(hook, &place, &symbol, RTLD_DL_SYMENT) != 0 && symbol != nullptr)
    note_code(search, reinterpret_cast<std::uint64_t>(hook), static_cast<const ElfW(Sym)*>(symbol)->st_size);
  dlclose(library);
}

}  // namespace

void find_memory_watchers() {
  Search search;
  dl_iterate_phdr(note_library, &search);
  if (search.open_mpi != nullptr) note_hook_of_open_mpi(search);
}

bool is_in_memory_watcher(const void* code) {
  const auto address = reinterpret_cast<std::uint64_t>(code);
  return std::any_of(watcher_codes().begin(), watcher_codes().end(), [address](const WatcherCode& watcher) {
    return address - watcher.begin.load(std::memory_order_relaxed) <
           watcher.bytes.load(std::memory_order_relaxed);
  });
}

}  // namespace apenet::shim
