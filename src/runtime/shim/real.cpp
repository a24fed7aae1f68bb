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

}  // namespace apenet::shim

APENET_EXPORT void apenet_host_time(int change) {
  apenet::shim::host_calls += change;
}
