// libapenet-cuda.so: memory calls of the CUDA runtime, by those of apenet_gpu.h. There is one device. Every
// call waits for its end, so streams have nothing to wait for.
#include <cstdlib>

#include "api/gpu/apenet_gpu.h"
#include "api/gpu/cuda/cuda_runtime_api.h"

#define APENET_CUDA extern "C" __attribute__((visibility("default")))

namespace {

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t done(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t with_device(cudaError_t error) {
  return done(ape_gpu_count() > 0 ? error : cudaErrorNoDevice);
}

cudaMemcpyKind kind_of(const void* to, const void* from) {
  if (ape_gpu_is_device(from) != 0)
    return ape_gpu_is_device(to) != 0 ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
  return ape_gpu_is_device(to) != 0 ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
}

}  // namespace

APENET_CUDA cudaError_t cudaGetDeviceCount(int* count) {
  *count = ape_gpu_count();
  return with_device(cudaSuccess);
}

APENET_CUDA cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return with_device(cudaSuccess);
}

APENET_CUDA cudaError_t cudaSetDevice(int device) {
  return with_device(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

APENET_CUDA cudaError_t cudaDeviceSynchronize() {
  return with_device(cudaSuccess);
}

APENET_CUDA cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = nullptr;
  if (ape_gpu_count() == 0) return done(cudaErrorNoDevice);
  *memory = ape_gpu_malloc(bytes);
  return done(*memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}

APENET_CUDA cudaError_t cudaFree(void* memory) {
  // cudaFree(0) is how programs initialise the device.
  return with_device(ape_gpu_free(memory) == 0 ? cudaSuccess : cudaErrorInvalidValue);
}

APENET_CUDA cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  constexpr std::size_t page_bytes = 4096;
  *memory = nullptr;
  if (ape_gpu_count() == 0) return done(cudaErrorNoDevice);
  if (posix_memalign(memory, page_bytes, bytes) != 0) return done(cudaErrorMemoryAllocation);
  return cudaSuccess;
}

APENET_CUDA cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int /*flags*/) {
  return cudaMallocHost(memory, bytes);
}

APENET_CUDA cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return with_device(cudaSuccess);
}

APENET_CUDA cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  constexpr int no_device = -2;  // cudaInvalidDeviceId
  *attributes = {cudaMemoryTypeUnregistered, no_device, nullptr, nullptr};
  if (ape_gpu_is_device(pointer) != 0) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the program's own
    *attributes = {cudaMemoryTypeDevice, 0, const_cast<void*>(pointer), nullptr};
  }
  return with_device(cudaSuccess);
}

APENET_CUDA cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (ape_gpu_count() == 0) return done(cudaErrorNoDevice);
  if (kind != cudaMemcpyDefault && kind != kind_of(to, from)) return done(cudaErrorInvalidValue);
  ape_gpu_memcpy(to, from, bytes);
  return cudaSuccess;
}

APENET_CUDA cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                        cudaStream_t /*stream*/) {
  return cudaMemcpy(to, from, bytes, kind);
}

APENET_CUDA cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  if (ape_gpu_count() == 0) return done(cudaErrorNoDevice);
  if (ape_gpu_is_device(to) == 0) return done(cudaErrorInvalidValue);
  ape_gpu_memset(to, value, bytes);
  return cudaSuccess;
}

APENET_CUDA cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t /*stream*/) {
  return cudaMemset(to, value, bytes);
}

APENET_CUDA cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;  // the default stream
  return with_device(cudaSuccess);
}

APENET_CUDA cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) {
  return with_device(cudaSuccess);
}

APENET_CUDA cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) {
  return with_device(cudaSuccess);
}

APENET_CUDA cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

APENET_CUDA const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected: the simulated machine has no GPU "
             "(host.gpu_copy_bandwidth_mib_s)";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal: expected 0";
  }
  return "unknown error";
}
