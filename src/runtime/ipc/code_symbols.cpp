#include "runtime/ipc/code_symbols.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

#include "runtime/ipc/code_files.hpp"

namespace apenet::ipc {
namespace {

constexpr std::size_t most_table_bytes = std::size_t{64}
                                         << 20;  // largest table of a file's symbols, or of their names
constexpr std::string_view debug_lines(".debug_line\0", 12);  // section names, with their ends
constexpr std::string_view debug_link(".gnu_debugli", 12);

// A file that is read at offsets which the file itself states, so each of them may be wrong.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~ElfFile() {
    if (fd_ >= 0) close(fd_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  template <typename T>
  [[nodiscard]] std::vector<T> table(std::uint64_t offset, std::uint64_t count) const {
    if (fd_ < 0 || count > most_table_bytes / sizeof(T)) return {};
    std::vector<T> entries(count);
    const ssize_t bytes = pread(fd_, entries.data(), count * sizeof(T), static_cast<off_t>(offset));
    entries.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes) / sizeof(T));
    return entries;
  }
  [[nodiscard]] std::optional<Elf64_Ehdr> header() const {
    const std::vector<Elf64_Ehdr> headers = table<Elf64_Ehdr>(0, 1);
    const bool is_elf = !headers.empty() && std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) == 0 &&
                        headers[0].e_ident[EI_CLASS] == ELFCLASS64;
    return is_elf ? std::optional(headers[0]) : std::nullopt;
  }

 private:
  int fd_;
};

}  // namespace

// The last of several names of one function is the one that programs use (read, not __libc_read).
CodeSymbols::CodeSymbols(const std::string& path) {
  const ElfFile file(path);
  const auto header = file.header();
  if (!header) return;
  for (const Elf64_Phdr& part : file.table<Elf64_Phdr>(header->e_phoff, header->e_phnum)) {
    if (part.p_type == PT_LOAD) loads_.push_back({part.p_offset, part.p_filesz, part.p_vaddr});
  }
  const auto sections = file.table<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  const std::size_t names_at = header->e_shstrndx;
  const std::uint64_t section_names = names_at < sections.size() ? sections[names_at].sh_offset : 0;
  for (const Elf64_Shdr& section : sections) {
    const auto title = file.table<char>(section_names + section.sh_name, debug_lines.size());
    const std::string_view begin(title.data(), title.size());
    has_lines_ = has_lines_ || begin == debug_lines || begin == debug_link;
    const bool has_symbols = section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM;
    if (!has_symbols || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    const auto names = file.table<char>(strings.sh_offset, strings.sh_size);
    const std::uint64_t count = section.sh_size / sizeof(Elf64_Sym);
    for (const Elf64_Sym& symbol : file.table<Elf64_Sym>(section.sh_offset, count)) {
      const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0;
      if (!is_function || symbol.st_name >= names.size()) continue;
      const char* name = names.data() + symbol.st_name;
      const std::size_t length = strnlen(name, names.size() - symbol.st_name);
      functions_.push_back({symbol.st_value, symbol.st_value + symbol.st_size, std::string(name, length)});
    }
  }
  std::sort(functions_.begin(), functions_.end(), [](const Function& a, const Function& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.name.size() != b.name.size() ? a.name.size() > b.name.size() : a.name > b.name;
  });
}

std::uint64_t CodeSymbols::linked_address(std::uint64_t offset) const {
  for (const Load& load : loads_) {
    if (load.offset <= offset && offset - load.offset < load.bytes)
      return offset - load.offset + load.address;
  }
  return 0;
}

std::string CodeSymbols::function_of(std::uint64_t linked) const {
  const auto after = std::upper_bound(functions_.begin(), functions_.end(), linked,
                                      [](std::uint64_t at, const Function& one) { return at < one.begin; });
  if (after == functions_.begin() || linked >= std::prev(after)->end) return {};
  return std::prev(after)->name;
}

bool is_mpi_function(const std::string& file, const std::string& function) {
  return is_mpi_library(file) || function.starts_with("mpi_") || function.starts_with("pmpi_") ||
         function.starts_with("MPI_") || function.starts_with("PMPI_");
}

}  // namespace apenet::ipc
