// CudaDriver: the driver of the host's real GPUs, in a process that has loaded it: which memory is theirs,
// and copies into and out of it.
//
// Nothing of CUDA is needed to build it: the functions are found by their names in the loaded library. Its
// calls get the host's clocks from the shim, so their time is none of the simulated machine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "api/libfabric/guard.hpp"

namespace apenet::libfabric {

// An error of real device memory. The program cannot see its text through MPI, so it is always printed.
class DeviceError : public FabricError {
 public:
  using FabricError::FabricError;
};

// An allocation of device memory, or a reserved range of addresses of which parts are mapped.
struct DeviceMemory {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  void* context = nullptr;  // nullptr: of no context (a pool's, or mapped)
  int device = 0;
};

class CudaDriver {
 public:
  // nullptr: the process has not loaded libcuda.so.1. Throws DeviceError for one without the calls below.
  static std::unique_ptr<CudaDriver> find_loaded();

  // The allocation that this address is in. Nothing: memory of the host, to which managed and registered
  // memory belong. Throws DeviceError when neither the driver nor the process knows the memory.
  [[nodiscard]] std::optional<DeviceMemory> find(std::uint64_t address) const;
  // Whether the address is in device memory. Nothing is thrown.
  [[nodiscard]] bool holds(std::uint64_t address) const;
  // Whether this is still an allocation or a reserved range.
  [[nodiscard]] bool has(const DeviceMemory& memory) const;
  // Both wait until the bytes are there. Throw DeviceError.
  void copy_from(const DeviceMemory& memory, std::uint64_t address, std::byte* to, std::size_t bytes);
  void copy_to(const DeviceMemory& memory, std::uint64_t address, const std::byte* from, std::size_t bytes);

 private:
  // As in cuda.h.
  using Result = int;
  using Context = void*;
  class Current;
  struct Answer;

  explicit CudaDriver(void* library);
  [[nodiscard]] Context current_of(int device) const;
  [[nodiscard]] Answer look_up(std::uint64_t address) const;
  template <typename... Parameters, typename... Arguments>
  void call(const char* name, Result (*function)(Parameters...), Arguments... arguments) const;
  [[nodiscard]] std::string describe(const char* name, Result result) const;

  Result (*get_attributes_)(unsigned, int*, void**, unsigned long long) = nullptr;
  Result (*copy_from_)(void*, unsigned long long, std::size_t) = nullptr;
  Result (*copy_to_)(unsigned long long, const void*, std::size_t) = nullptr;
  Result (*synchronize_)(void*) = nullptr;
  Result (*push_context_)(Context) = nullptr;
  Result (*pop_context_)(Context*) = nullptr;
  Result (*current_context_)(Context*) = nullptr;
  Result (*current_device_)(int*) = nullptr;
  Result (*retain_primary_)(Context*, int) = nullptr;
  Result (*release_primary_)(int) = nullptr;
  Result (*error_name_)(Result, const char**) = nullptr;
  std::set<int> primaries_;  // devices whose primary context this driver holds
};

}  // namespace apenet::libfabric
