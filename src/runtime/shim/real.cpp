#include "runtime/shim/real.hpp"

#include <dlfcn.h>

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

APENET_EXPORT void apenet_host_time(int change) {
  host_calls += change;
}

}  // namespace apenet::shim
