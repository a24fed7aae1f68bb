#include "api/libfabric/cuda_driver.hpp"

#include <dlfcn.h>
#include <link.h>
#include <rdma/fi_errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/ipc/host_time.hpp"

namespace apenet::libfabric {
namespace {

constexpr int cuda_success = 0;

// CUpointer_attribute and CUmemorytype of cuda.h.
enum PointerAttribute : int {
  attribute_context = 1,
  attribute_memory_type = 2,
  attribute_is_managed = 8,
  attribute_device_ordinal = 9,
  attribute_range_begin = 11,
  attribute_range_bytes = 12,
};
constexpr unsigned device_memory_type = 2;

template <typename Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw DeviceError(FI_ENOSYS, std::string("libcuda.so.1 has no ") + name +
                                     ": the memory of its GPUs cannot be recognised");
}

// Asks the kernel, because an access of memory that is none would end the process. The kernel's refusal of
// the call says nothing about the memory.
bool is_memory_of_process(std::uint64_t address) {
  char byte = 0;
  const iovec to{&byte, 1};
  const iovec from{reinterpret_cast<void*>(address), 1};  // NOLINT(performance-no-int-to-ptr)
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

bool is_any_cuda_loaded() {
  const auto is_cuda = [](dl_phdr_info* info, std::size_t /*bytes*/, void* /*nothing*/) {
    return std::strstr(info->dlpi_name, "cuda") != nullptr ? 1 : 0;
  };
  return dl_iterate_phdr(is_cuda, nullptr) != 0;
}

}  // namespace

// dlopen() of a library that is not there searches a hundred folders, in each rank of a run.
std::unique_ptr<CudaDriver> CudaDriver::find_loaded() {
  if (!is_any_cuda_loaded()) return nullptr;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  // The reference stays: the functions are called until the process ends.
  return library != nullptr ? std::unique_ptr<CudaDriver>(new CudaDriver(library)) : nullptr;
}

CudaDriver::CudaDriver(void* library) {
  find_function(library, "cuPointerGetAttributes", get_attributes_);
  find_function(library, "cuMemcpyDtoH_v2", copy_from_);
  find_function(library, "cuMemcpyHtoD_v2", copy_to_);
  find_function(library, "cuStreamSynchronize", synchronize_);
  find_function(library, "cuCtxPushCurrent_v2", push_context_);
  find_function(library, "cuCtxPopCurrent_v2", pop_context_);
  find_function(library, "cuCtxGetCurrent", current_context_);
  find_function(library, "cuCtxGetDevice", current_device_);
  find_function(library, "cuDevicePrimaryCtxRetain", retain_primary_);
  find_function(library, "cuDevicePrimaryCtxRelease_v2", release_primary_);
  find_function(library, "cuGetErrorName", error_name_);
}

std::string CudaDriver::describe(const char* name, Result result) const {
  const char* words = nullptr;
  if (error_name_(result, &words) != cuda_success || words == nullptr) words = "an unknown error";
  return std::string(name) + " failed: " + words + " (" + std::to_string(result) + ")";
}

template <typename... Parameters, typename... Arguments>
void CudaDriver::call(const char* name, Result (*function)(Parameters...), Arguments... arguments) const {
  const Result result = function(arguments...);
  if (result != cuda_success) throw DeviceError(FI_EIO, describe(name, result));
}

// nullptr: the thread has none, or one of another device.
CudaDriver::Context CudaDriver::current_of(int device) const {
  Context context = nullptr;
  int its_device = -1;
  const bool is_of_device = current_context_(&context) == cuda_success && context != nullptr &&
                            current_device_(&its_device) == cuda_success && its_device == device;
  return is_of_device ? context : nullptr;
}

// The memory's context is that of the calling thread while it lives: a driver's context belongs to a thread,
// and MPI may make progress in another one than the program's. For memory of no context that is the thread's
// own, if it has one of the device: the driver orders copies within a context only, and a copy of the program
// may return before its end. Otherwise it is the device's primary context, of which the first reference
// stays: a driver needs a good part of a second to create one that nothing else holds.
class CudaDriver::Current {
 public:
  Current(CudaDriver& driver, const DeviceMemory& memory) : driver_(driver), device_(memory.device) {
    Context context = memory.context != nullptr ? memory.context : driver_.current_of(device_);
    if (context == nullptr) {
      driver_.call("cuDevicePrimaryCtxRetain", driver_.retain_primary_, &context, device_);
      retained_ = !driver.primaries_.insert(device_).second;
    }
    const Result result = driver_.push_context_(context);
    if (result == cuda_success) return;
    release();
    throw DeviceError(FI_EIO, driver_.describe("cuCtxPushCurrent_v2", result));
  }
  ~Current() {
    Context popped = nullptr;
    driver_.pop_context_(&popped);
    release();
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  void release() const {
    if (retained_) driver_.release_primary_(device_);
  }

  const CudaDriver& driver_;
  int device_;
  bool retained_ = false;
};

// What the driver says about an address. A range of mapped memory is that of its reservation; it is reported
// for the parts that are not mapped, too, which are no device memory.
struct CudaDriver::Answer {
  Result result = cuda_success;
  bool is_device = false;  // in memory of a device that only the driver reaches
  DeviceMemory memory;
};

CudaDriver::Answer CudaDriver::look_up(std::uint64_t address) const {
  Answer answer;
  DeviceMemory& memory = answer.memory;
  unsigned type = 0;
  unsigned is_managed = 0;
  std::array attributes = {int{attribute_memory_type}, int{attribute_is_managed},
                           int{attribute_context},     int{attribute_device_ordinal},
                           int{attribute_range_begin}, int{attribute_range_bytes}};
  std::array<void*, attributes.size()> values = {&type,          &is_managed,   &memory.context,
                                                 &memory.device, &memory.begin, &memory.bytes};
  const ipc::HostTime host_time;
  answer.result = get_attributes_(attributes.size(), attributes.data(), values.data(), address);
  answer.is_device = answer.result == cuda_success && type == device_memory_type && is_managed == 0;
  return answer;
}

bool CudaDriver::holds(std::uint64_t address) const {
  return look_up(address).is_device;
}

bool CudaDriver::has(const DeviceMemory& memory) const {
  const Answer answer = look_up(memory.begin);
  return answer.result == cuda_success && answer.memory.begin == memory.begin &&
         answer.memory.bytes == memory.bytes;
}

std::optional<DeviceMemory> CudaDriver::find(std::uint64_t address) const {
  const Answer answer = look_up(address);
  if (answer.is_device) return answer.memory;
  // The driver fails for memory of the host, too, for example where it has no device.
  if (is_memory_of_process(address)) return std::nullopt;
  const std::string why = answer.result == cuda_success ? "CUDA knows no device memory there, either"
                                                        : describe("cuPointerGetAttributes", answer.result);
  throw DeviceError(FI_EFAULT, "a buffer that is no memory of the process (freed device memory?): " + why);
}

void CudaDriver::copy_from(const DeviceMemory& memory, std::uint64_t address, std::byte* to,
                           std::size_t bytes) {
  const ipc::HostTime host_time;
  const Current current(*this, memory);
  call("cuMemcpyDtoH_v2", copy_from_, to, address, bytes);
}

void CudaDriver::copy_to(const DeviceMemory& memory, std::uint64_t address, const std::byte* from,
                         std::size_t bytes) {
  const ipc::HostTime host_time;
  const Current current(*this, memory);
  call("cuMemcpyHtoD_v2", copy_to_, address, from, bytes);
  // A copy from pageable memory may return before the device has the bytes.
  call("cuStreamSynchronize", synchronize_, nullptr);
}

}  // namespace apenet::libfabric
