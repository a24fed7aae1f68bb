#include "api/gasnet/mpi_library.hpp"

#include <dlfcn.h>

namespace apenet::gasnet {
namespace {

// MPICH's binary interface, which MPI libraries of its family share (mpich.org/abi).
constexpr const char* library_name = "libmpi.so.12";
constexpr int comm_world = 0x44000000;
constexpr int byte = 0x4c00010d;
constexpr int any_source = -2;
constexpr int thread_single = 0;
constexpr int thread_serialized = 2;
constexpr int tag = 0;

// Libraries of another binary interface: two MPI libraries in a process do not work.
constexpr std::array others{"libmpi.so.40", "libmpi_abi.so.0", "libmpi_abi.so.1"};

// The simulator's shim, which is in front of every library, has the functions that take part in virtual time.
template <typename Function>
bool find(const char* name, Function& function, std::string& why) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) why = std::string("the MPI library has no ") + name;
  return function != nullptr;
}

}  // namespace

std::unique_ptr<MpiLibrary> MpiLibrary::open(bool is_threaded, std::string& why) {
  for (const char* const other : others) {
    if (dlopen(other, RTLD_NOLOAD | RTLD_LAZY) == nullptr) continue;
    why = std::string("the program has loaded ") + other + ": expected MPICH's " + library_name;
    return nullptr;
  }
  if (dlopen(library_name, RTLD_LAZY | RTLD_GLOBAL) == nullptr) {
    const char* const reason = dlerror();
    why = std::string("the MPI library cannot be loaded: ") + (reason == nullptr ? library_name : reason);
    return nullptr;
  }
  Functions found{};
  const bool has_all =
      find("MPI_Initialized", found.initialized, why) && find("MPI_Init_thread", found.init_thread, why) &&
      find("MPI_Comm_dup", found.comm_dup, why) && find("MPI_Isend", found.isend, why) &&
      find("MPI_Irecv", found.irecv, why) && find("MPI_Testany", found.testany, why) &&
      find("MPI_Waitany", found.waitany, why) && find("MPI_Get_count", found.get_count, why) &&
      find("MPI_Finalize", found.finalize, why);
  if (!has_all) return nullptr;
  std::unique_ptr<MpiLibrary> library(new MpiLibrary(found));
  int is_initialised = 0;
  found.initialized(&is_initialised);
  library->is_own_ = is_initialised == 0;
  if (library->is_own_) {
    int provided = thread_single;
    found.init_thread(nullptr, nullptr, is_threaded ? thread_serialized : thread_single, &provided);
  }
  found.comm_dup(comm_world, &library->communicator_);
  return library;
}

MpiLibrary::Request MpiLibrary::send(std::span<const std::byte> data, std::uint32_t target) {
  Request request = no_request;
  functions_.isend(data.data(), static_cast<int>(data.size()), byte, static_cast<int>(target), tag,
                   communicator_, &request);
  return request;
}

MpiLibrary::Request MpiLibrary::receive(std::span<std::byte> data) {
  Request request = no_request;
  functions_.irecv(data.data(), static_cast<int>(data.size()), byte, any_source, tag, communicator_,
                   &request);
  return request;
}

MpiLibrary::Completed MpiLibrary::completed(int index, const Status& status) const {
  int bytes = 0;
  functions_.get_count(&status, byte, &bytes);
  return {static_cast<std::size_t>(index), static_cast<std::uint32_t>(status.source),
          static_cast<std::size_t>(bytes)};
}

std::optional<MpiLibrary::Completed> MpiLibrary::test(std::span<Request> requests) {
  int index = 0;
  int is_done = 0;
  Status status{};
  functions_.testany(static_cast<int>(requests.size()), requests.data(), &index, &is_done, &status);
  return is_done == 0 ? std::nullopt : std::optional(completed(index, status));
}

MpiLibrary::Completed MpiLibrary::wait(std::span<Request> requests) {
  int index = 0;
  Status status{};
  functions_.waitany(static_cast<int>(requests.size()), requests.data(), &index, &status);
  return completed(index, status);
}

void MpiLibrary::close() {
  if (is_own_) functions_.finalize();
}

}  // namespace apenet::gasnet
