#include "runtime/launch/code_places.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace apenet {
namespace {

constexpr std::size_t most_table_bytes = std::size_t{64}
                                         << 20;  // largest table of a file's symbols, or of their names
constexpr std::string_view debug_lines(".debug_line\0", 12);  // section names, with their ends
constexpr std::string_view debug_link(".gnu_debugli", 12);

bool read_memory(int process_id, std::uint64_t address, void* to, std::size_t bytes) {
  iovec here{to, bytes};
  // The address belongs to the other process.
  iovec there{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return process_vm_readv(process_id, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

// The C library keeps a thread's control block at the upper end of its stack. It begins with its own address,
// twice (tcbhead_t: tcb, dtv, self). The memory behind it belongs to others, even within one mapping.
bool begins_control_block(const std::vector<std::uint64_t>& words, std::size_t i, std::uint64_t from) {
  const std::uint64_t address = from + i * sizeof(std::uint64_t);
  return words[i] == address && i + 2 < words.size() && words[i + 2] == address;
}

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

CodePlaces::CodePlaces(int process_id) : process_id_(process_id) {
  std::ifstream maps("/proc/" + std::to_string(process_id) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    Mapping mapping;
    char dash = 0;
    std::string access;
    std::string device;
    std::uint64_t inode = 0;
    fields >> std::hex >> mapping.begin >> dash >> mapping.end >> access >> mapping.offset >> device;
    if (fields) memory_.emplace_back(mapping.begin, mapping.end);
    if (!(fields >> std::dec >> inode >> std::ws) || access.size() < 3 || access[2] != 'x') continue;
    if (std::getline(fields, mapping.file) && mapping.file.starts_with('/'))
      code_.push_back(std::move(mapping));
  }
}

const CodePlaces::Mapping* CodePlaces::mapping_of(std::uint64_t address) const {
  const auto after = std::upper_bound(code_.begin(), code_.end(), address,
                                      [](std::uint64_t at, const Mapping& one) { return at < one.begin; });
  if (after == code_.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

// Whether the instruction before the address may be a call.
bool CodePlaces::follows_call(std::uint64_t address) const {
#if defined(__x86_64__)
  std::array<std::uint8_t, 7> before{};
  if (address < before.size() ||
      !read_memory(process_id_, address - before.size(), before.data(), before.size()))
    return false;
  if (before[2] == 0xe8) return true;  // to a distance of 32 bits
  // To an address in a register or in memory, which takes 2 to 7 bytes.
  for (std::size_t at = 0; at + 1 < before.size(); ++at) {
    if (before[at] == 0xff && (before[at + 1] >> 3 & 7) == 2) return true;
  }
  return false;
#else
  return address != 0;
#endif
}

std::uint64_t CodePlaces::end_of_memory(std::uint64_t address) const {
  const auto after = std::upper_bound(
      memory_.begin(), memory_.end(), address,
      [](std::uint64_t at, const std::pair<std::uint64_t, std::uint64_t>& one) { return at < one.first; });
  return after == memory_.begin() ? 0 : std::prev(after)->second;
}

std::vector<std::uint64_t> CodePlaces::calls_on_stack(std::uint64_t from, std::size_t bytes) const {
  constexpr std::size_t step = 512;
  const std::uint64_t end = std::min(from + bytes, end_of_memory(from));
  std::vector<std::uint64_t> words;
  for (std::uint64_t at = from; at < end; at += step) {
    const std::size_t count = std::min<std::uint64_t>(step, end - at) / sizeof(std::uint64_t);
    words.resize(words.size() + count);
    if (read_memory(process_id_, at, &words[words.size() - count], count * sizeof(std::uint64_t))) continue;
    words.resize(words.size() - count);
    break;
  }
  std::vector<std::uint64_t> calls;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (begins_control_block(words, i, from)) break;
    if (mapping_of(words[i]) != nullptr && follows_call(words[i])) calls.push_back(words[i]);
  }
  return calls;
}

std::string CodePlaces::file_of(std::uint64_t address) const {
  const Mapping* mapping = mapping_of(address);
  return mapping == nullptr ? std::string{} : mapping->file;
}

std::string CodePlaces::path_of(const Mapping& mapping) const {
  return "/proc/" + std::to_string(process_id_) + "/root" + mapping.file;
}

// The last of several names of one function is the one that programs use (read, not __libc_read).
CodePlaces::Module CodePlaces::read_module(const std::string& path) {
  Module module;
  const ElfFile file(path);
  const auto header = file.header();
  if (!header) return module;
  for (const Elf64_Phdr& part : file.table<Elf64_Phdr>(header->e_phoff, header->e_phnum)) {
    if (part.p_type == PT_LOAD) module.loads.push_back({part.p_offset, part.p_filesz, part.p_vaddr});
  }
  const auto sections = file.table<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  const std::size_t names_at = header->e_shstrndx;
  const std::uint64_t section_names = names_at < sections.size() ? sections[names_at].sh_offset : 0;
  for (const Elf64_Shdr& section : sections) {
    const auto title = file.table<char>(section_names + section.sh_name, debug_lines.size());
    const std::string_view begin(title.data(), title.size());
    module.has_lines = module.has_lines || begin == debug_lines || begin == debug_link;
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
      module.functions.push_back(
          {symbol.st_value, symbol.st_value + symbol.st_size, std::string(name, length)});
    }
  }
  std::sort(module.functions.begin(), module.functions.end(), [](const Function& a, const Function& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.name.size() != b.name.size() ? a.name.size() > b.name.size() : a.name > b.name;
  });
  return module;
}

const CodePlaces::Module& CodePlaces::module_of(const Mapping& mapping) {
  const auto known = modules_.find(mapping.file);
  if (known != modules_.end()) return known->second;
  return modules_.emplace(mapping.file, read_module(path_of(mapping))).first->second;
}

std::uint64_t CodePlaces::linked_address(std::uint64_t address) {
  const Mapping* mapping = mapping_of(address);
  if (mapping == nullptr) return 0;
  const std::uint64_t offset = address - mapping->begin + mapping->offset;
  for (const Load& load : module_of(*mapping).loads) {
    if (load.offset <= offset && offset - load.offset < load.bytes)
      return offset - load.offset + load.address;
  }
  return 0;
}

std::string CodePlaces::function_of(std::uint64_t address) {
  const std::uint64_t linked = linked_address(address);
  if (linked == 0) return {};
  const std::vector<Function>& functions = module_of(*mapping_of(address)).functions;
  const auto after = std::upper_bound(functions.begin(), functions.end(), linked,
                                      [](std::uint64_t at, const Function& one) { return at < one.begin; });
  if (after == functions.begin() || linked >= std::prev(after)->end) return {};
  return std::prev(after)->name;
}

// Stubs that lead to other files have no name.
bool CodePlaces::may_leave_file(std::uint64_t address) {
#if defined(__x86_64__)
  constexpr std::uint8_t direct_call = 0xe8;
  std::array<std::uint8_t, 5> call{};
  if (address < call.size() || !read_memory(process_id_, address - call.size(), call.data(), call.size()))
    return true;
  if (call[0] != direct_call) return true;
  std::int32_t distance = 0;
  std::memcpy(&distance, call.data() + 1, sizeof distance);
  return function_of(address + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance))).empty();
#else
  return address != 0;
#endif
}

std::string CodePlaces::line_of_call(std::uint64_t address, SourceLines& lines) {
  const std::uint64_t linked = linked_address(address);
  if (linked == 0) return {};
  const Mapping& mapping = *mapping_of(address);
  return module_of(mapping).has_lines ? lines.line_of(path_of(mapping), mapping.file, linked - 1)
                                      : std::string{};
}

}  // namespace apenet
