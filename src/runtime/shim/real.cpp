#include "runtime/shim/real.hpp"

#include <dlfcn.h>

namespace apenet::shim {

void* next_symbol(const char* name) {
  return dlsym(RTLD_NEXT, name);
}

}  // namespace apenet::shim
