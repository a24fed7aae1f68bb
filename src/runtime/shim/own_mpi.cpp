#include "runtime/shim/own_mpi.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/mpi_library.hpp"

namespace apenet::shim {
namespace {

// The bytes of a file, without a heap. What the file states of itself may be wrong.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const int fd = ipc::host_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status {};
    if (ipc::host_call(SYS_fstat, fd, &status) == 0 && status.st_size > 0) {
      void* memory = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (memory != MAP_FAILED)
        bytes_ = {static_cast<const char*>(memory), static_cast<std::size_t>(status.st_size)};
    }
    ipc::host_call(SYS_close, fd, 0);
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Whether the entry is whole.
  template <typename Entry>
  [[nodiscard]] bool read(Entry& entry, std::uint64_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof entry) return false;
    std::memcpy(&entry, bytes_.data() + at, sizeof entry);
    return true;
  }
  // The text at a place, up to its zero byte.
  [[nodiscard]] std::string_view text(std::uint64_t at) const {
    if (at >= bytes_.size()) return {};
    return {bytes_.data() + at, strnlen(bytes_.data() + at, bytes_.size() - at)};
  }

 private:
  std::string_view bytes_;
};

// A weak reference asks whether there is an MPI library.
bool needs_or_defines(const Elf64_Sym& symbol) {
  return symbol.st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) != STB_WEAK;
}

bool names_init(const MappedFile& file, const Elf64_Shdr& table, const Elf64_Shdr& strings) {
  Elf64_Sym symbol{};
  for (std::uint64_t at = 0; at + sizeof symbol <= table.sh_size; at += sizeof symbol) {
    if (!file.read(symbol, table.sh_offset + at)) return false;
    if (is_init_of_mpi(file.text(strings.sh_offset + symbol.st_name)) && needs_or_defines(symbol))
      return true;
  }
  return false;
}

}  // namespace

// A Fortran program calls the latter. It defines them itself, or a library with a stub in Fortran does.
bool is_init_of_mpi(std::string_view name) {
  constexpr auto names =
      std::to_array<std::string_view>({"MPI_Init", "MPI_Init_thread", "mpi_init_", "mpi_init_thread_"});
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_own_mpi() {
  const int before = errno;
  const MappedFile file("/proc/self/exe");
  Elf64_Ehdr header{};
  bool is_named = false;
  if (file.read(header, 0) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
    Elf64_Shdr table{};
    Elf64_Shdr strings{};
    for (std::uint64_t i = 0; i < header.e_shnum && !is_named; ++i) {
      if (!file.read(table, header.e_shoff + i * sizeof table)) break;
      const bool has_symbols = table.sh_type == SHT_SYMTAB || table.sh_type == SHT_DYNSYM;
      is_named = has_symbols && file.read(strings, header.e_shoff + table.sh_link * sizeof strings) &&
                 names_init(file, table, strings);
    }
  }
  errno = before;
  return is_named && find_profiling_symbol("PMPI_Init") == nullptr;
}

}  // namespace apenet::shim
