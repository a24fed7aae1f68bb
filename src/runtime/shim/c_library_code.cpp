#if defined(__x86_64__)

#include "runtime/shim/c_library_code.hpp"

#include <link.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

int search_library(dl_phdr_info* object, std::size_t /*bytes*/, void* data) {
  auto& found = *static_cast<CLibraryCode*>(data);
  for (const ElfW(Phdr) & part : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    const std::uint64_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0 || found.call - begin >= part.p_memsz) continue;
    found.begin = begin;
    found.bytes = part.p_memsz;
    return 1;
  }
  return 0;
}

}  // namespace

CLibraryCode find_library_code() {
  CLibraryCode found;
  constexpr std::array<std::uint8_t, 3> call{0x0f, 0x05, 0xc3};  // syscall; ret
  constexpr std::size_t most_bytes = 32;
  const auto* const code = static_cast<const std::uint8_t*>(next_symbol("getppid"));
  if (code == nullptr) return found;
  const auto* const place = std::search(code, code + most_bytes, call.begin(), call.end());
  if (place == code + most_bytes) return found;
  found.call = reinterpret_cast<std::uint64_t>(place);
  dl_iterate_phdr(search_library, &found);
  constexpr std::array<std::uint8_t, 9> restorer{0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05};
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const std::span all(reinterpret_cast<const std::uint8_t*>(found.begin), found.bytes);
  const auto at = std::search(all.begin(), all.end(), restorer.begin(), restorer.end());
  if (at != all.end()) found.restorer = found.begin + static_cast<std::uint64_t>(at - all.begin());
  return found;
}

}  // namespace apenet::shim

#endif
