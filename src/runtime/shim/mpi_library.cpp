#include "runtime/shim/mpi_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// RTLD_NEXT does not find a library loaded with RTLD_LOCAL (as mpi4py loads MPI), so search every loaded
// object.
struct SymbolSearch {
  const char* name;
  void* found;
};

int search_object(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<SymbolSearch*>(data);
  if (object->dlpi_name == nullptr || std::strstr(object->dlpi_name, "libmpi") == nullptr) return 0;
  void* handle = dlopen(object->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return 0;
  search.found = host_symbol(handle, search.name);
  dlclose(handle);
  return search.found != nullptr ? 1 : 0;
}

Abi find_abi() {
  if (openmpi_object("ompi_mpi_comm_world") != 0) return Abi::openmpi;
  return std::strstr(library_file(), "libmpi_abi") != nullptr ? Abi::standard : Abi::mpich;
}

}  // namespace

const char* library_file() {
  Dl_info info{};
  return dladdr(profiling_symbol("PMPI_Init"), &info) == 0 || info.dli_fname == nullptr ? "" : info.dli_fname;
}

Abi abi() {
  static const Abi found = find_abi();
  return found;
}

// In a program linked to the library, the loader copies the object into the program, and the library's own
// copy is not used.
std::uint64_t openmpi_object(const char* name) {
  if (void* copied = dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<std::uint64_t>(copied);
  void* library = dlopen(library_file(), RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return 0;
  const auto found = reinterpret_cast<std::uint64_t>(host_symbol(library, name));
  dlclose(library);
  return found;
}

void* find_profiling_symbol(const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  SymbolSearch search{name, nullptr};
  dl_iterate_phdr(search_object, &search);
  return search.found;
}

bool is_stub() {
  static const bool stub =
      find_profiling_symbol("PMPI_Init") == nullptr && dlsym(RTLD_NEXT, "MPI_Init") != nullptr;
  return stub;
}

void* profiling_symbol(const char* name) {
  if (void* found = find_profiling_symbol(name)) return found;
  void* const of_stub = is_stub() ? dlsym(RTLD_NEXT, name + 1) : nullptr;
  if (of_stub != nullptr) return of_stub;
  std::fprintf(stderr, "apenet: the program calls %s, but no loaded MPI library provides it\n", name + 1);
  std::_Exit(2);
}

}  // namespace apenet::shim
