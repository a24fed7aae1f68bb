// Clears large tables of libraries without touching their pages.
//
// MPICH clears MPIDI_OFI_global in MPI_Finalize: 3.4 MB in its .bss, of which it has used a twentieth. To
// touch the other pages costs each rank 834 page faults and 3.3 MB: with 512 ranks a fifth of the CPU time of
// a run that only begins and ends, and 1.7 GB. No variable of MPICH makes the table smaller, and huge pages
// would save faults but no memory. So the shim answers memset, and passes on all calls but those.
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using Memset = void* (*)(void*, int, std::size_t);

constexpr std::size_t least_table_bytes = std::size_t{256} * 1024;

struct Pages {
  std::uintptr_t begin;
  std::uintptr_t end;
};

std::uintptr_t whole_pages(std::uintptr_t bytes) {
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes / page_bytes * page_bytes;
}

std::uintptr_t next_page(std::uintptr_t address) {
  return whole_pages(address + static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)) - 1);
}

// Whether all of the pages are ones of a loaded object's .bss: private memory that no file backs.
bool is_bss(Pages pages) {
  const auto holds = [](dl_phdr_info* object, std::size_t /*bytes*/, void* sought) {
    const Pages& wanted = *static_cast<const Pages*>(sought);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = object->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
      const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
      const std::uintptr_t bss = next_page(begin + part.p_filesz);
      if (wanted.begin >= bss && wanted.end <= begin + part.p_memsz) return 1;
    }
    return 0;
  };
  return dl_iterate_phdr(holds, &pages) != 0;
}

bool begins_or_ends_mpi() {
  ipc::Client* client = ipc::Client::attached();
  return client != nullptr && (client->block().identity.initialising != 0 || client->progress().leaves());
}

// Gives the whole pages back: the next access finds zeros in them.
void* clear_table(void* memory, std::size_t bytes, Memset real) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const Pages pages{next_page(address), whole_pages(address + bytes)};
  auto* const first = static_cast<std::byte*>(memory) + (pages.begin - address);
  const std::size_t whole_bytes = pages.end - pages.begin;
  if (!is_bss(pages) || madvise(first, whole_bytes, MADV_DONTNEED) != 0) return real(memory, 0, bytes);
  real(memory, 0, pages.begin - address);
  real(first + whole_bytes, 0, address + bytes - pages.end);
  return memory;
}

}  // namespace
}  // namespace apenet::shim

APENET_EXPORT void* memset(void* memory, int value, std::size_t bytes) noexcept {
  static const auto real = apenet::shim::next<apenet::shim::Memset>("memset");
  if (bytes < apenet::shim::least_table_bytes || value != 0 || !apenet::shim::begins_or_ends_mpi())
    return real(memory, value, bytes);
  return apenet::shim::clear_table(memory, bytes, real);
}
