// The places in the program from which it calls, independent of where the host has loaded it: a module, and
// an offset into it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace apenet::shim {

// A file of the program that is loaded: the program itself, or a library.
struct Module {
  char name[128] = {};      // name of its file, without folders
  char identity[64] = {};   // "build-id:HEX", or "fnv:HEX" of the file's contents if the linker wrote none
  std::uint64_t begin = 0;  // where it is loaded
};

struct CallSite {
  const void* address = nullptr;  // to where the call returns; nullptr: this entry is free
  const char* function = nullptr;
  std::uint32_t module = 0;
  std::uint64_t offset = 0;

  // "module+0xoffset"; the text is cut if it does not fit.
  void write(std::span<char> to, const Module& of) const;
};

// All of them, in tables of fixed size: the calls may come from inside an allocator, so nothing is allocated
// here. Not thread-safe.
class CallSites {
 public:
  static constexpr std::uint32_t most_sites = 4096;
  static constexpr std::uint32_t most_modules = 64;
  // A site that does not fit, or in code that no file holds (made by the program while it runs).
  static constexpr std::uint32_t none = most_sites;
  // The beginning of a thread: a site without address.
  static constexpr std::uint32_t thread_start = most_sites + 1;

  // Returns the number of the site. function: the name of what is called, a literal.
  std::uint32_t find(const void* caller, const char* function);

  [[nodiscard]] const CallSite& site(std::uint32_t number) const { return sites_[number]; }
  [[nodiscard]] std::span<const Module> modules() const { return {modules_.data(), module_count_}; }

 private:
  std::uint32_t module_of(const void* address);

  std::array<CallSite, most_sites> sites_{};
  std::uint32_t site_count_ = 0;
  std::array<Module, most_modules> modules_{};
  std::uint32_t module_count_ = 0;
};

}  // namespace apenet::shim
