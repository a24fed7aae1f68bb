#include "runtime/shim/call_sites.hpp"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "runtime/ipc/compute_table.hpp"

namespace apenet::shim {
namespace {

// The module of an address, while the loader's list is searched.
struct Search {
  std::uint64_t address;
  Module found;
  const char* path = nullptr;  // path of the file
  bool has_build_id = false;
  bool is_found = false;
};

bool holds(const dl_phdr_info& object, std::uint64_t address) {
  return std::any_of(object.dlpi_phdr, object.dlpi_phdr + object.dlpi_phnum, [&](const ElfW(Phdr) & part) {
    return part.p_type == PT_LOAD && address - (object.dlpi_addr + part.p_vaddr) < part.p_memsz;
  });
}

// Writes the linker's build id, if the notes have one.
bool write_build_id(std::span<const std::byte> notes, Module& module) {
  constexpr std::size_t word = 4;
  const auto aligned = [](std::size_t bytes) { return (bytes + word - 1) / word * word; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t contents = sizeof note + aligned(note.n_namesz);
    const std::size_t bytes = contents + aligned(note.n_descsz);
    if (bytes > notes.size()) return false;
    const bool is_id = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == word &&
                       std::memcmp(notes.data() + sizeof note, "GNU", word) == 0;
    if (is_id) {
      int length = std::snprintf(module.identity, sizeof module.identity, "build-id:");
      for (const std::byte value : notes.subspan(contents, std::min<std::size_t>(note.n_descsz, 20))) {
        length += std::snprintf(module.identity + length, 3, "%02x", std::to_integer<unsigned>(value));
      }
      return true;
    }
    notes = notes.subspan(bytes);
  }
  return false;
}

int check_object(dl_phdr_info* object, std::size_t /*bytes*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (!holds(*object, search.address)) return 0;
  search.is_found = true;
  search.found.begin = object->dlpi_addr;
  search.path = object->dlpi_name != nullptr && *object->dlpi_name != '\0' ? object->dlpi_name : nullptr;
  for (int i = 0; i < object->dlpi_phnum && !search.has_build_id; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as integers
    const auto* notes = reinterpret_cast<const std::byte*>(object->dlpi_addr + part.p_vaddr);
    search.has_build_id = write_build_id({notes, part.p_memsz}, search.found);
  }
  return 1;
}

void write_hash_of_file(const char* path, Module& module) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  std::uint64_t hash = ipc::hash_text({});
  std::array<char, 4096> bytes{};
  for (ssize_t more = 0; file >= 0 && (more = read(file, bytes.data(), bytes.size())) > 0;)
    hash = ipc::hash_text({bytes.data(), static_cast<std::size_t>(more)}, hash);
  if (file >= 0) close(file);
  std::snprintf(module.identity, sizeof module.identity, "fnv:%016llx",
                static_cast<unsigned long long>(hash));
}

// The first slot of an address in a table of open addressing.
std::uint32_t slot_of(const void* address) {
  const auto bits = reinterpret_cast<std::uint64_t>(address) * 0x9e3779b97f4a7c15U;
  return static_cast<std::uint32_t>(bits >> 32U) % CallSites::most_sites;
}

}  // namespace

void CallSite::write(std::span<char> to, const Module& of) const {
  std::snprintf(to.data(), to.size(), "%s+0x%llx", of.name, static_cast<unsigned long long>(offset));
}

std::uint32_t CallSites::find(const void* caller, const char* function) {
  std::uint32_t slot = slot_of(caller);
  while (sites_[slot].address != nullptr && sites_[slot].address != caller) slot = (slot + 1) % most_sites;
  CallSite& site = sites_[slot];
  if (site.address == caller) return slot;
  if (site_count_ == most_sites - 1) return none;  // one entry stays free, which ends the search
  const std::uint32_t module = module_of(caller);
  if (module == most_modules) return none;
  ++site_count_;
  site = {caller, function, module, reinterpret_cast<std::uint64_t>(caller) - modules_[module].begin};
  return slot;
}

std::uint32_t CallSites::module_of(const void* address) {
  Search search{.address = reinterpret_cast<std::uint64_t>(address), .found = {}};
  dl_iterate_phdr(check_object, &search);
  if (!search.is_found) return most_modules;
  const auto known = std::find_if(modules_.begin(), modules_.begin() + module_count_,
                                  [&](const Module& module) { return module.begin == search.found.begin; });
  if (known != modules_.begin() + module_count_) return static_cast<std::uint32_t>(known - modules_.begin());
  if (module_count_ == most_modules) return most_modules;
  std::array<char, 4096> own_path{};
  const char* path = search.path;
  if (path == nullptr) {
    const ssize_t length = readlink("/proc/self/exe", own_path.data(), own_path.size() - 1);
    own_path[static_cast<std::size_t>(std::max<ssize_t>(length, 0))] = '\0';
    path = own_path.data();
  }
  Module& module = modules_[module_count_];
  module = search.found;
  const std::string_view whole = path;
  std::string_view name = whole.substr(whole.rfind('/') + 1);
  name.copy(module.name, sizeof module.name - 1);
  // The front end reads names from lines with tabs.
  std::replace_if(
      module.name, module.name + std::strlen(module.name), [](char c) { return c < ' '; }, '?');
  if (!search.has_build_id) write_hash_of_file(path, module);
  return module_count_++;
}

}  // namespace apenet::shim
