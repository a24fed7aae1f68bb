#include "realtime/pmix_client.hpp"

#include <dlfcn.h>

#include <bit>
#include <cstdlib>

#include "api/apelib/error.hpp"

namespace apenet::apelib {
namespace {

// Numbers of the PMIx Standard.
constexpr std::uint16_t type_string = 3;
constexpr std::uint16_t type_uint32 = 14;
constexpr std::uint8_t scope_global = 3;
constexpr std::uint32_t every_rank = UINT32_MAX - 1;  // PMIX_RANK_WILDCARD
constexpr const char* key_of_size = "pmix.job.size";

constexpr const char* pmix_library = "libpmix.so.2";

template <typename Function>
void find_call(void* loaded, const char* name, Function& function) {
  function = std::bit_cast<Function>(dlsym(loaded, name));
  if (function == nullptr)
    refuse_environment(std::string("PMIX_RANK is set, but not PMI_FD: ") + pmix_library + " has no " + name);
}

}  // namespace

PmixClient::PmixClient() {
  load();
  check(calls_.init(&self_, nullptr, 0), "PMIx_Init");
  Value* size = look_up(every_rank, key_of_size);
  size_ = size->type == type_uint32 ? size->data.number : 0;
  std::free(size);  // NOLINT(cppcoreguidelines-no-malloc): made by the library
  if (size_ == 0 || self_.rank >= size_)
    refuse_environment("PMIx: rank " + std::to_string(self_.rank) + " of " + std::to_string(size_));
}

// The library has threads of its own: it is never unloaded.
void PmixClient::load() {
  void* loaded = dlopen(pmix_library, RTLD_NOW | RTLD_GLOBAL);
  if (loaded == nullptr) {
    const char* why = dlerror();
    refuse_environment(
        "PMIX_RANK is set, but not PMI_FD: this launcher speaks PMIx, and its library cannot be loaded (" +
        std::string(why == nullptr ? pmix_library : why) +
        "): name its folder in LD_LIBRARY_PATH, or start the program with mpiexec of MPICH or "
        "srun --mpi=pmi2");
  }
  find_call(loaded, "PMIx_Init", calls_.init);
  find_call(loaded, "PMIx_Finalize", calls_.finalize);
  find_call(loaded, "PMIx_Put", calls_.put);
  find_call(loaded, "PMIx_Commit", calls_.commit);
  find_call(loaded, "PMIx_Fence", calls_.fence);
  find_call(loaded, "PMIx_Get", calls_.get);
  find_call(loaded, "PMIx_Error_string", calls_.error_text);
}

void PmixClient::check(int status, const char* call) const {
  if (status != 0) refuse_environment(std::string(call) + ": " + calls_.error_text(status));
}

void PmixClient::put(std::string_view key, std::string_view value) {
  std::string text(value);
  Value passed;
  passed.type = type_string;
  passed.data.string = text.data();
  check(calls_.put(scope_global, std::string(key).c_str(), &passed), "PMIx_Put");
}

void PmixClient::barrier() {
  check(calls_.commit(), "PMIx_Commit");
  check(calls_.fence(nullptr, 0, nullptr, 0), "PMIx_Fence");
}

PmixClient::Value* PmixClient::look_up(std::uint32_t rank, const std::string& key) {
  Process owner = self_;
  owner.rank = rank;
  Value* found = nullptr;
  check(calls_.get(&owner, key.c_str(), nullptr, 0, &found), "PMIx_Get");
  if (found == nullptr) refuse_environment("PMIx_Get: no value of " + key);
  return found;
}

std::string PmixClient::get(std::uint32_t owner, std::string_view key) {
  Value* found = look_up(owner, std::string(key));
  const bool is_text = found->type == type_string && found->data.string != nullptr;
  std::string text = is_text ? found->data.string : "";
  if (is_text) std::free(found->data.string);  // NOLINT(cppcoreguidelines-no-malloc): made by the library
  std::free(found);                            // NOLINT(cppcoreguidelines-no-malloc)
  return text;
}

// Calls of MPI in the same process have a reference of their own.
void PmixClient::finalize() {
  check(calls_.finalize(nullptr, 0), "PMIx_Finalize");
}

}  // namespace apenet::apelib
