#include "runtime/shim/direct_code.hpp"

#include <gnu/libc-version.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/shim/direct_instructions.hpp"

namespace apenet::shim {
namespace {

// The first one that is found ends the search, so a rank scans all of its code once at most. Larger
// objects are taken for what they are: frameworks that use the C library.
constexpr std::size_t most_code_bytes = std::size_t{128} << 20U;

struct CodeRange {
  std::atomic<std::uint64_t> begin{0};
  std::atomic<std::uint64_t> end{0};
};

struct CodeObjects {
  std::array<CodeRange, 64> passed{};
  std::atomic<std::size_t> passed_count{0};
  // The list of the loader's objects, as far as it is known.
  unsigned long long added = 0;
  unsigned long long removed = 0;
  std::size_t known = 0;
  std::atomic<bool> is_direct{false};
  std::array<char, 96> name{};
};

// Written only under the loader's lock, which dl_iterate_phdr() takes.
constinit CodeObjects code_objects;

bool starts_with_any(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [name](std::string_view one) { return name.starts_with(one); });
}

bool is_passed_object(std::string_view name) {
  constexpr auto passed = std::to_array<std::string_view>(
      {"ld-linux", "ld.so", "linux-vdso", "libpthread.so", "librt.so", "libc.so", "libgomp", "libomp",
       "libiomp", "libitm", "libasan", "liblsan", "libtsan", "libubsan", "libhwasan", "libclang_rt",
       "libcuda.so", "libnvidia-"});
  return starts_with_any(name, passed);
}

// The large libraries of most ranks, which use the C library. Not scanning them saves most of the time.
bool is_known_object(std::string_view name) {
  constexpr auto known = std::to_array<std::string_view>(
      {"libmpi", "libfabric.so", "libucp.so", "libuct.so", "libucs.so", "libucm.so", "libapenet-",
       "libstdc++.so", "libm.so", "libgfortran", "libpython3"});
  return starts_with_any(name, known);
}

void pass(std::uint64_t begin, std::uint64_t end) {
  const std::size_t count = code_objects.passed_count;
  for (std::size_t i = 0; i < count; ++i) {
    if (code_objects.passed[i].begin == begin && code_objects.passed[i].end == end) return;
  }
  if (count == code_objects.passed.size()) return;
  code_objects.passed[count].begin = begin;
  code_objects.passed[count].end = end;
  code_objects.passed_count = count + 1;
}

void note_direct(std::string_view path) {
  if (code_objects.is_direct) return;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string_view shown = name.empty() ? std::string_view(program_invocation_short_name) : name;
  shown.copy(code_objects.name.data(), code_objects.name.size() - 1);
  code_objects.is_direct = true;
}

void scan_object(const dl_phdr_info& object) {
  const std::string_view path = object.dlpi_name == nullptr ? std::string_view() : object.dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const bool is_passed = is_passed_object(name);
  if (!is_passed && (code_objects.is_direct || is_known_object(name))) return;
  for (const ElfW(Phdr) & part : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    constexpr unsigned code_flags = PF_X | PF_R;
    if (part.p_type != PT_LOAD || (part.p_flags & code_flags) != code_flags) continue;
    const std::uint64_t begin = object.dlpi_addr + part.p_vaddr;
    if (is_passed) {
      pass(begin, begin + part.p_memsz);
    } else if (part.p_filesz <= most_code_bytes &&
               // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as integers
               has_direct_call({reinterpret_cast<const std::uint8_t*>(begin), part.p_filesz})) {
      note_direct(path);
      return;
    }
  }
}

// As r_debug_extended of <link.h> since glibc 2.35, which sets this version with the second namespace.
struct Namespace {
  r_debug base;
  const Namespace* next;
};
constexpr int version_with_next = 2;

// The first object of a namespace is the one that the program has loaded.
void note_namespaces() {
  if (_r_debug.r_version < version_with_next) return;
  const auto* one = reinterpret_cast<const Namespace*>(&_r_debug);
  __asm__("" : "+r"(one));  // the compiler knows the object by its older type
  one = one->next;
  for (; one != nullptr; one = one->next) {
    const link_map* const first = one->base.r_map;
    if (first != nullptr) note_direct(first->l_name);
  }
}

struct Scan {
  bool has_namespaces;
  std::size_t place = 0;
};

int scan_next(dl_phdr_info* object, std::size_t /*bytes*/, void* data) {
  auto& [has_namespaces, place] = *static_cast<Scan*>(data);
  if (place == 0) {
    if (object->dlpi_adds == code_objects.added && object->dlpi_subs == code_objects.removed) return 1;
    if (object->dlpi_subs != code_objects.removed)
      code_objects.known = 0;  // others may stand in their places
    code_objects.added = object->dlpi_adds;
    code_objects.removed = object->dlpi_subs;
    if (has_namespaces) note_namespaces();
  }
  if (place++ < code_objects.known) return 0;
  scan_object(*object);
  code_objects.known = place;
  return 0;
}

}  // namespace

bool shows_namespaces() {
  constexpr long least = 35;
  const char* const version = gnu_get_libc_version();  // "2.36"
  char* end = nullptr;
  return std::strtol(version, &end, 10) > 2 || (*end == '.' && std::strtol(end + 1, nullptr, 10) >= least);
}

bool find_direct_code(bool has_namespaces) {
  Scan scan{.has_namespaces = has_namespaces};
  dl_iterate_phdr(scan_next, &scan);
  return code_objects.is_direct;
}

const char* direct_object() {
  return code_objects.name.data();
}

bool is_passed_code(std::uint64_t address) {
  const auto passed = std::span(code_objects.passed).first(code_objects.passed_count);
  return std::any_of(passed.begin(), passed.end(), [address](const CodeRange& range) {
    return address >= range.begin && address < range.end;
  });
}

}  // namespace apenet::shim
