#include "runtime/shim/host_caller.hpp"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace apenet::shim {
namespace {

// The code of one library of the driver. None is ever unloaded.
struct LibraryCode {
  std::atomic<std::uint64_t> begin{0};
  std::atomic<std::uint64_t> end{0};
};

constexpr std::size_t most_libraries = 16;

struct DriverCode {
  LibraryCode libraries[most_libraries];
  std::atomic<std::size_t> count{0};
  std::atomic<std::uint64_t> libraries_loaded{0};  // by the process, at the last search for the driver's
};

DriverCode& driver_code() {
  static constinit DriverCode value;
  return value;
}

// libcuda.so.1, and those that it loads when it needs them, such as its compiler for kernels.
bool is_driver(const char* path) {
  const std::string_view whole = path != nullptr ? path : "";
  const std::string_view name = whole.substr(whole.rfind('/') + 1);
  return name.starts_with("libcuda.so") || name.starts_with("libnvidia-");
}

struct DriverSearch {
  bool has_begun = false;
  std::size_t found = 0;
};

// Called for each library; a result other than zero ends the search. If nothing has been loaded since the
// last search, it ends at the first library.
int find_driver(dl_phdr_info* info, std::size_t /*bytes*/, void* data) {
  DriverCode& code = driver_code();
  DriverSearch& search = *static_cast<DriverSearch*>(data);
  if (!search.has_begun && code.libraries_loaded.exchange(info->dlpi_adds) == info->dlpi_adds) return 1;
  search.has_begun = true;
  if (!is_driver(info->dlpi_name) || search.found == most_libraries) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    LibraryCode& library = code.libraries[search.found++];
    library.end.store(info->dlpi_addr + part.p_vaddr + part.p_memsz);
    library.begin.store(info->dlpi_addr + part.p_vaddr);
    code.count.store(std::max(code.count.load(), search.found));
    break;
  }
  return 0;
}

}  // namespace

bool is_in_driver(const void* code) {
  const ipc::Client* client = ipc::Client::attached();
  if (client == nullptr || !client->started() || client->costs(0).gpu_copy_bytes_per_second == 0)
    return false;
  DriverSearch search;
  dl_iterate_phdr(find_driver, &search);
  const DriverCode& driver = driver_code();
  const auto address = reinterpret_cast<std::uint64_t>(code);
  return std::any_of(driver.libraries, driver.libraries + driver.count.load(),
                     [address](const LibraryCode& library) {
                       const std::uint64_t begin = library.begin.load();
                       return address - begin < library.end.load() - begin;
                     });
}

}  // namespace apenet::shim
