#include "runtime/shim/host_caller.hpp"

#include <link.h>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace apenet::shim {
namespace {

// Addresses of the driver's code. It is never unloaded.
struct DriverCode {
  std::atomic<std::uint64_t> begin{0};
  std::atomic<std::uint64_t> end{0};
  std::atomic<std::uint64_t> libraries_loaded{0};  // when it was last looked for
};

DriverCode& driver_code() {
  static constinit DriverCode value;
  return value;
}

bool is_driver(const char* path) {
  const std::string_view name = path != nullptr ? path : "";
  return name.substr(name.rfind('/') + 1).starts_with("libcuda.so");
}

// Of each library; not zero ends the search. Nothing has been loaded since the last one: it ends at the
// first.
int look_for_driver(dl_phdr_info* info, std::size_t /*bytes*/, void* is_new) {
  DriverCode& code = driver_code();
  bool& is_new_search = *static_cast<bool*>(is_new);
  is_new_search = is_new_search || code.libraries_loaded.exchange(info->dlpi_adds) != info->dlpi_adds;
  if (!is_new_search) return 1;
  if (!is_driver(info->dlpi_name)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    code.end.store(info->dlpi_addr + part.p_vaddr + part.p_memsz);
    code.begin.store(info->dlpi_addr + part.p_vaddr);
  }
  return 1;
}

}  // namespace

bool is_in_driver(const void* code) {
  const ipc::Client* client = ipc::Client::attached();
  if (client == nullptr || !client->started() || client->costs(0).gpu_copy_bytes_per_second == 0)
    return false;
  const DriverCode& driver = driver_code();
  bool is_new = false;
  if (driver.begin.load() == 0) dl_iterate_phdr(look_for_driver, &is_new);
  const std::uint64_t begin = driver.begin.load();
  return begin != 0 && reinterpret_cast<std::uint64_t>(code) - begin < driver.end.load() - begin;
}

}  // namespace apenet::shim
