#include "runtime/shim/kernel_clocks.hpp"

#if !defined(__x86_64__)

bool apenet::shim::divert_kernel_clocks() {
  return false;
}
bool apenet::shim::is_kernel_clock(std::uint64_t /*place*/) {
  return false;
}

#else

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace apenet::shim {
namespace {

struct Function {
  std::string_view name;
  std::uint32_t call;
};

constexpr std::uint64_t bytes_to_call = 7;  // mov $number, %eax; syscall

constexpr auto functions = std::to_array<Function>({{"__vdso_clock_gettime", SYS_clock_gettime},
                                                    {"__vdso_gettimeofday", SYS_gettimeofday},
                                                    {"__vdso_time", SYS_time},
                                                    {"__vdso_clock_getres", SYS_clock_getres}});

// The kernel's image in this process, as far as its symbols go.
class Image {
 public:
  explicit Image(std::uint64_t begin) : begin_(begin) {
    const auto* const header = at<ElfW(Ehdr)>(begin);
    const std::span parts(at<ElfW(Phdr)>(begin + header->e_phoff), header->e_phnum);
    const ElfW(Phdr)* dynamic = nullptr;
    for (const ElfW(Phdr) & part : parts) {
      if (part.p_type == PT_LOAD && bytes_ == 0) {
        shift_ = begin - part.p_vaddr;
        bytes_ = part.p_memsz;
      }
      if (part.p_type == PT_DYNAMIC) dynamic = &part;
    }
    if (dynamic == nullptr) return;
    for (const auto* entry = at<ElfW(Dyn)>(shift_ + dynamic->p_vaddr); entry->d_tag != DT_NULL; ++entry) {
      const std::uint64_t address = shift_ + entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) symbols_ = at<ElfW(Sym)>(address);
      if (entry->d_tag == DT_STRTAB) names_ = at<char>(address);
      if (entry->d_tag == DT_STRSZ) name_bytes_ = entry->d_un.d_val;
    }
  }
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // Where the function begins; 0: it has none of this name. The table of symbols ends where their names
  // begin.
  [[nodiscard]] std::uint64_t find(std::string_view name) const {
    if (symbols_ == nullptr || names_ == nullptr) return 0;
    const auto* const end = reinterpret_cast<const ElfW(Sym)*>(names_);
    for (const ElfW(Sym)* symbol = symbols_; symbol + 1 <= end; ++symbol) {
      if (symbol->st_name < name_bytes_ && symbol->st_value != 0 && name == names_ + symbol->st_name)
        return shift_ + symbol->st_value;
    }
    return 0;
  }

 private:
  template <typename Type>
  static const Type* at(std::uint64_t address) {
    return reinterpret_cast<const Type*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
  std::uint64_t begin_;
  std::uint64_t shift_ = 0;
  std::size_t bytes_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  std::size_t name_bytes_ = 0;
};

// The places after the calls.
constinit std::array<std::atomic<std::uint64_t>, functions.size()> places{};

// Threads may be about to enter the function, so it changes at once.
void divert(std::uint64_t function, std::uint32_t call) {
  std::array<std::uint8_t, 8> code{0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};  // mov $call, %eax; syscall; ret
  std::memcpy(code.data() + 1, &call, sizeof call);
  std::uint64_t word = 0;
  std::memcpy(&word, code.data(), sizeof word);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(function), word, __ATOMIC_SEQ_CST);
}

}  // namespace

bool divert_kernel_clocks() {
  const std::uint64_t begin = getauxval(AT_SYSINFO_EHDR);
  if (begin == 0) return true;
  const Image image(begin);
  constexpr std::size_t page_bytes = 4096;
  const std::size_t bytes = (image.bytes() + page_bytes - 1) / page_bytes * page_bytes;
  auto* const memory = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
  if (bytes == 0 || mprotect(memory, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::uint64_t place = image.find(functions[i].name);
    if (place == 0 || place % sizeof(std::uint64_t) != 0) continue;
    places[i] = place + bytes_to_call;
    divert(place, functions[i].call);
  }
  mprotect(memory, bytes, PROT_READ | PROT_EXEC);
  return true;
}

bool is_kernel_clock(std::uint64_t place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

}  // namespace apenet::shim

#endif
