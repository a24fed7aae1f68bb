// Reports where a rank runs: on a node of the simulated machine, once virtual time has begun. Programs group
// their ranks by host name, and MPI groups ranks that share memory.
//
// Before virtual time begins, names are the host's, because launchers and MPI libraries connect by them.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/computation.hpp"
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/mpi_world.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// MPI_COMM_TYPE_SHARED.
bool is_shared_type(Word split_type) {
  const int type = static_cast<int>(split_type);
  switch (abi()) {
    case Abi::mpich:
      return type == 1;
    case Abi::standard:
      return type == 221;
    case Abi::openmpi:
      break;
  }
  return type == 0;
}

bool is_null_info(Word info) {
  const auto handle = static_cast<std::uint32_t>(info);
  switch (abi()) {
    case Abi::mpich:
      return handle == 0x1c000000;
    case Abi::standard:
      return handle == 0x130;
    case Abi::openmpi:
      break;
  }
  return static_cast<std::uint64_t>(info) == openmpi_object("ompi_mpi_info_null");
}

// The new communicator has the hints that MPI_Comm_split_type was given.
int split_by_node(Word comm, Word node, Word key, Word info, Word part) {
  const int result = call(profiling_symbol("PMPI_Comm_split"), comm, node, key, part);
  if (result != 0 || is_null_info(info)) return result;
  // A handle is an int of MPICH, a pointer of the others.
  const Word made =
      abi() == Abi::mpich ? *reinterpret_cast<const int*>(part) : *reinterpret_cast<const Word*>(part);
  return call(profiling_symbol("PMPI_Comm_set_info"), made, info);
}

// While Open MPI begins, that of its launcher; nullptr for the host's own.
const char* known_host_name(ipc::Client* client) {
  if (client != nullptr) return client->block().place.host_name;
  ipc::Client* const beginning = ipc::Client::attached();
  // A process that a rank with sockets has started.
  if (beginning != nullptr && beginning->is_own_block() && beginning->header().has_sockets != 0)
    return beginning->block().place.host_name;
  const bool begins = beginning != nullptr && !beginning->started() && has_launcher();
  return begins ? launcher_host_name : nullptr;
}

}  // namespace

APENET_EXPORT int gethostname(char* name, size_t size) noexcept {
  ipc::Client* client = virtual_client();
  const char* known = known_host_name(client);
  if (known == nullptr) return next<int (*)(char*, size_t)>("gethostname")(name, size);
  const std::size_t length = std::strlen(known) + 1;
  std::memcpy(name, known, std::min(size, length));
  if (length <= size) return 0;
  errno = ENAMETOOLONG;
  return -1;
}

APENET_EXPORT int uname(utsname* names) noexcept {
  const int result = next<int (*)(utsname*)>("uname")(names);
  ipc::Client* client = virtual_client();
  const char* known = known_host_name(client);
  if (result != 0 || known == nullptr) return result;
  static_assert(sizeof names->nodename >= sizeof client->block().place.host_name);
  std::memcpy(names->nodename, known, std::strlen(known) + 1);
  return result;
}

APENET_EXPORT int MPI_Get_processor_name(Word name, Word length) {
  ipc::Client* client = virtual_client();
  if (client == nullptr) return call(profiling_symbol("PMPI_Get_processor_name"), name, length);
  // The name is shorter than MPI_MAX_PROCESSOR_NAME of any library.
  const std::size_t used = std::strlen(client->block().place.host_name);
  std::memcpy(reinterpret_cast<char*>(name), client->block().place.host_name, used + 1);
  *reinterpret_cast<int*>(length) = static_cast<int>(used);
  return 0;
}

// MPICH would put each rank into a communicator of its own, since its messages may not use shared memory;
// Open MPI would put all ranks into one. A rank that passes MPI_UNDEFINED calls the library's function, which
// begins with the same split.
APENET_EXPORT int MPI_Comm_split_type(Word comm, Word split_type, Word key, Word info, Word part) {
  const ProgramCall program_call(__builtin_return_address(0), __func__, Callee::library);
  constexpr auto id = ipc::MpiCall::MPI_Comm_split_type;
  ipc::Client* client = virtual_client();
  if (client == nullptr) {
    return call(profiling_symbol("PMPI_Comm_split_type"), comm, split_type, key, info, part);
  }
  const InCall note(client, id, {{comm}}, {__builtin_return_address(0), __builtin_frame_address(0)});
  const auto node = static_cast<Word>(client->block().place.node);
  const int result = is_shared_type(split_type)
                         ? split_by_node(comm, node, key, info, part)
                         : call(profiling_symbol("PMPI_Comm_split_type"), comm, split_type, key, info, part);
  if (result == 0) MakesCommunicator::after(*client, id, {}, {.first = comm, .last = part});
  return result;
}

}  // namespace apenet::shim
