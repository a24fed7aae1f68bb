#include "runtime/shim/real.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <string_view>

extern "C" {
__attribute__((visibility("hidden"))) void* apenet_host_dlsym = nullptr;
__attribute__((visibility("hidden"), used)) void apenet_find_dlsym() {
  void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  apenet_host_dlsym = found;
}
}

namespace apenet::shim {

constinit thread_local int host_calls = 0;
constinit thread_local std::uint32_t real_calls = 0;

void* next_symbol(const char* name) {
  return dlsym(RTLD_NEXT, name);
}

void* next_symbol_of(const char* name, const char* version) {
  void* const found = dlvsym(RTLD_NEXT, name, version);
  return found != nullptr ? found : next_symbol(name);
}

void* host_symbol(void* library, const char* name) {
  if (apenet_host_dlsym == nullptr) apenet_find_dlsym();
  return reinterpret_cast<void* (*)(void*, const char*)>(apenet_host_dlsym)(library, name);
}

void* own_symbol(const char* name) {
  static void* const library = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&next_symbol), &own);
    return dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return host_symbol(library, name);
}

void* c_library_symbol(const char* name) {
  for (const char* const library : {"libc.so.6", "libpthread.so.0"}) {  // the latter before glibc 2.34
    void* const opened = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void* const found = opened == nullptr ? nullptr : host_symbol(opened, name);
    if (found != nullptr) return found;
  }
  return next_symbol(name);
}

// Whether the function is one of the shim, or of the library of simulated sockets, which stands before it.
static bool is_of_run(const void* function) {
  constexpr std::string_view names[] = {"/libapenet-shim.so", "/libapenet-sockets.so"};
  Dl_info info{};
  if (function == nullptr || dladdr(function, &info) == 0) return false;
  const std::string_view path = info.dli_fname;
  return std::any_of(std::begin(names), std::end(names),
                     [path](std::string_view name) { return path.ends_with(name); });
}

void* called_symbol(const char* name) {
  void* const first = host_symbol(RTLD_DEFAULT, name);
  return is_of_run(first) ? first : own_symbol(name);
}

APENET_EXPORT void apenet_host_time(int change) {
  host_calls += change;
}

}  // namespace apenet::shim
