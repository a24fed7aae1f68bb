// GpuHeap: the device memory that a process allocates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace apenet::shim {

// A range of addresses, reserved at the first allocation, so that a pointer's address tells whether it is
// one to device memory. Only allocated pages have memory behind them: use after free ends by a signal. An
// allocation begins on a page, at the lowest address at which it fits.
class GpuHeap {
 public:
  // Programs of real GPUs reserve several times the memory of a GPU, and let allocations grow into it.
  static constexpr std::size_t reserved_bytes = std::size_t{4} << 40;

  GpuHeap() = default;
  GpuHeap(const GpuHeap&) = delete;
  GpuHeap& operator=(const GpuHeap&) = delete;

  // Zeroed memory; nullptr: none is left.
  [[nodiscard]] void* allocate(std::size_t bytes);
  // False: allocate() has not returned this pointer, or it has been freed.
  [[nodiscard]] bool release(void* memory);
  [[nodiscard]] bool is_used() const { return begin_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] bool holds(const void* address) const {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    return begin != 0 && reinterpret_cast<std::uint64_t>(address) - begin < reserved_bytes;
  }

 private:
  bool reserve();

  std::mutex mutex_;
  std::atomic<std::uint64_t> begin_{0};          // 0: not reserved yet
  std::map<std::uint64_t, std::uint64_t> used_;  // end of each allocation, by its begin
};

// The heap of the process.
GpuHeap& device_memory();

}  // namespace apenet::shim
