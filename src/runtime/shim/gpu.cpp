// The calls of src/api/gpu/apenet_gpu.h: device memory of the simulated node, and what its use costs.
#include <cerrno>
#include <cstring>

#include "runtime/shim/gpu_heap.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {

GpuHeap& device_memory() {
  // Stands for the process; never destroyed, because exit handlers still free their memory.
  static GpuHeap& heap = *new GpuHeap;
  return heap;
}

namespace {

// Before MPI_Init, too: programs choose their device and allocate first.
bool node_has_gpu() {
  const ipc::Header* machine = ipc::Client::machine();
  return machine != nullptr && machine->rails[0].mpi.software.gpu_copy_bytes_per_second > 0;
}

// The CPU waits for the GPU's copy engine. `crossing`: bytes that go over the bus.
void charge(std::size_t crossing) {
  ipc::Client* client = virtual_client();
  if (client == nullptr) return;
  client->note_thread();
  client->charge_compute(client->costs(0).gpu_copy(static_cast<std::int64_t>(crossing)).ps());
}

}  // namespace

APENET_EXPORT int ape_gpu_count() {
  return node_has_gpu() ? 1 : 0;
}

APENET_EXPORT void* ape_gpu_malloc(std::size_t bytes) {
  void* memory = node_has_gpu() ? device_memory().allocate(bytes) : nullptr;
  if (memory == nullptr) errno = node_has_gpu() ? ENOMEM : ENODEV;
  return memory;
}

APENET_EXPORT int ape_gpu_free(void* memory) {
  if (memory == nullptr || device_memory().release(memory)) return 0;
  errno = EINVAL;
  return -1;
}

APENET_EXPORT int ape_gpu_is_device(const void* address) {
  return device_memory().holds(address) ? 1 : 0;
}

APENET_EXPORT void ape_gpu_memcpy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  std::memmove(to, from, bytes);
  const bool from_gpu = device_memory().holds(from);
  const bool to_gpu = device_memory().holds(to);
  if (from_gpu || to_gpu) charge(from_gpu != to_gpu ? bytes : 0);
}

APENET_EXPORT void ape_gpu_memset(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return;
  std::memset(to, value, bytes);
  if (device_memory().holds(to)) charge(0);
}

}  // namespace apenet::shim
