#include "runtime/shim/gpu_heap.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "runtime/ipc/pages.hpp"

namespace apenet::shim {
namespace {

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): of this process
}

}  // namespace

bool GpuHeap::reserve() {
  if (begin_ != 0) return true;
  void* range = mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  begin_ = reinterpret_cast<std::uint64_t>(range);
  return true;
}

void* GpuHeap::allocate(std::size_t bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (bytes > reserved_bytes || !reserve()) return nullptr;
  const std::uint64_t size = ipc::round_to_pages(std::max<std::size_t>(bytes, 1));
  std::uint64_t begin = begin_;
  for (const auto& [used_begin, used_end] : used_) {
    if (used_begin - begin >= size) break;
    begin = used_end;
  }
  if (size > begin_ + reserved_bytes - begin) return nullptr;
  if (mprotect(pointer(begin), size, PROT_READ | PROT_WRITE) != 0) return nullptr;
  used_.emplace(begin, begin + size);
  return pointer(begin);
}

bool GpuHeap::release(void* memory) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = used_.find(reinterpret_cast<std::uint64_t>(memory));
  if (found == used_.end()) return false;
  // A new mapping gives the memory back, and the next allocation there finds zeros.
  const void* cleared = mmap(memory, found->second - found->first, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (cleared == MAP_FAILED) return false;
  used_.erase(found);
  return true;
}

}  // namespace apenet::shim
