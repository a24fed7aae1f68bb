#include "runtime/shim/real.hpp"

#include <dlfcn.h>

namespace apenet::shim {

constinit thread_local int host_calls = 0;

void* next_symbol(const char* name) {
  return dlsym(RTLD_NEXT, name);
}

void* next_symbol_of(const char* name, const char* version) {
  void* const found = dlvsym(RTLD_NEXT, name, version);
  return found != nullptr ? found : next_symbol(name);
}

void* own_symbol(const char* name) {
  static void* const library = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&next_symbol), &own);
    return dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return dlsym(library, name);
}

APENET_EXPORT void apenet_host_time(int change) {
  host_calls += change;
}

}  // namespace apenet::shim
