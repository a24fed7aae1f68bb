#include "runtime/shim/mpi_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace apenet::shim {
namespace {

// RTLD_NEXT does not find a library loaded with RTLD_LOCAL (as mpi4py loads MPI), so search every loaded
// object.
struct Search {
  const char* name;
  void* found;
};

int search_object(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (object->dlpi_name == nullptr || std::strstr(object->dlpi_name, "libmpi") == nullptr) return 0;
  void* handle = dlopen(object->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return 0;
  search.found = dlsym(handle, search.name);
  dlclose(handle);
  return search.found != nullptr ? 1 : 0;
}

}  // namespace

void* profiling_symbol(const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  Search search{name, nullptr};
  dl_iterate_phdr(search_object, &search);
  if (search.found == nullptr) {
    std::fprintf(stderr, "apenet: the program calls %s, but no loaded MPI library provides it\n", name + 1);
    std::_Exit(2);
  }
  return search.found;
}

}  // namespace apenet::shim
