// What Open MPI learns from its launcher. The launcher has started all ranks on one node, its own, and the
// library lets ranks of a node meet in shared memory, past the simulated network: it synchronises windows
// there. So each rank hears that it is alone on its node, as MPICH does. What ranks of a node of the
// simulated machine share, the shim makes (shared_windows.cpp, places.cpp).
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "runtime/ipc/client.hpp"
#include "runtime/shim/launcher_threads.hpp"
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/mpi_world.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// The part of pmix_value_t that is used.
struct PmixValue {
  std::uint16_t type;
  union {
    char* text;
    std::uint16_t half;
    std::uint32_t word;
  } data;
};
constexpr std::uint16_t pmix_string = 3;
constexpr std::uint16_t pmix_uint16 = 13;
constexpr std::uint16_t pmix_uint32 = 14;

// Open MPI's interface to its launcher; nullptr if it is not loaded.
void* pmix_symbol(const char* name) {
  void* library = dlopen("libpmix.so.2", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return nullptr;
  void* symbol = host_symbol(library, name);
  dlclose(library);
  return symbol;
}

void put_answer(const ipc::Client& client, std::string_view key, PmixValue& value) {
  if (key == "pmix.lpeers" && value.type == pmix_string && value.data.text != nullptr) {
    // The value is a list such as "0,1,2", in which this rank stands: its number alone is not longer.
    const std::string own = std::to_string(client.rank());
    if (std::string_view(value.data.text).size() >= own.size())
      std::memcpy(value.data.text, own.c_str(), own.size() + 1);
  } else if (key == "pmix.local.size" && value.type == pmix_uint32) {
    value.data.word = 1;
  } else if (key == "pmix.lrank" && value.type == pmix_uint16) {
    value.data.half = 0;
  }
}

// The launcher answers in order: it has taken what the rank has told it, such as the text of an error.
void await_launcher() {
  const std::array<const char*, 2> keys{"apenet.none", nullptr};
  void* const ask = pmix_symbol("PMIx_Unpublish");
  if (ask != nullptr) call(ask, keys.data(), 0, 0);
}

}  // namespace

// Also called for the address of each rank to which this one sends for the first time.
APENET_EXPORT int PMIx_Get(Word process, Word key, Word hints, Word hint_count, Word value) {
  constexpr int not_supported = -47;
  void* const real = pmix_symbol("PMIx_Get");
  if (real == nullptr) return not_supported;
  const int result = call(real, process, key, hints, hint_count, value);
  const ipc::Client* const client = ipc::Client::attached();
  auto* const* const answer = reinterpret_cast<PmixValue* const*>(value);
  if (result == 0 && client != nullptr && key != 0 && answer != nullptr && *answer != nullptr)
    put_answer(*client, reinterpret_cast<const char*>(key), **answer);
  if (virtual_client() != nullptr) await_launcher_threads();
  return result;
}

// Open MPI calls it for an error that ends the run, too. Its launcher would end the other ranks at any point.
APENET_EXPORT int PMIx_Abort(int status, Word message, Word processes, Word process_count) {
  ipc::Client* const client = rank_client();
  if (client != nullptr && client->block().identity.initialised != 0) {
    client->attend();
    std::fflush(nullptr);
    await_launcher();
    note_abort(*client, status);
    exit_aborted(status);
  }
  constexpr int not_supported = -47;
  void* const real = pmix_symbol("PMIx_Abort");
  if (real == nullptr) return not_supported;
  return call(real, status, message, processes, process_count);
}

}  // namespace apenet::shim
