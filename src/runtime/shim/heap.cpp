#include "runtime/shim/heap.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/ipc/pages.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// Larger than what surroundings change, so that the heaps of equal programs continue at the same address.
// Only addresses are used up: the memory between has no pages.
constexpr std::uintptr_t unit = std::uintptr_t{64} << 20U;
constexpr std::size_t largest = std::size_t{64}
                                << 10U;  // below what the C library takes from the system alone
constexpr std::size_t smallest = 24;
constexpr std::size_t step = 16;             // between the sizes of small chunks
constexpr std::size_t largest_small = 1032;  // kept for each thread
// What a program has freed before it began MPI, it may need again.
constexpr std::size_t most_used_up = std::size_t{64} << 20U;
constexpr std::uintptr_t page = ipc::page_bytes;
constexpr std::size_t least_given_back = 16 * page;

std::uintptr_t heap_end() {
  return reinterpret_cast<std::uintptr_t>(sbrk(0));
}

// Moves the heap's end to a round address. Returns it; 0 if the system refuses it.
std::uintptr_t leave_gap(std::uintptr_t end) {
  const std::uintptr_t begin = (end + 2 * unit - 1) / unit * unit;
  if (sbrk(static_cast<std::intptr_t>(begin - end)) != reinterpret_cast<void*>(end)) return 0;
  const std::uintptr_t first = (end + page - 1) / page * page;
  // Not counted as memory in use. If the system refuses that, the C library cannot use the gap all the same.
  [[maybe_unused]] const void* const gap =
      mmap(reinterpret_cast<void*>(first), begin - first, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return begin;
}

// Uses up the free memory of the heap below an address.
class Filler {
 public:
  explicit Filler(std::uintptr_t begin) : begin_(begin) {}
  // Keeps memory of this size until it lies above, and frees that. Small memory may also be what another
  // thread has allocated and this one has freed; large memory outside the heap is the system's.
  void use_up(std::size_t bytes) {
    while (used_up_ < most_used_up) {
      void* memory = std::malloc(bytes);
      if (memory == nullptr) return;
      const auto address = reinterpret_cast<std::uintptr_t>(memory);
      const bool is_outside = address >= heap_end();
      if (is_outside ? bytes > largest_small : address >= begin_) {
        std::free(memory);
        return;
      }
      used_up_ += bytes;
    }
  }

 private:
  std::uintptr_t begin_;
  std::size_t used_up_ = 0;
};

// The memory of the heap that was allocated before it was settled. Its holes lie where the host has put them,
// so what the program frees of it is not allocated again.
class RetiredMemory {
 public:
  // Whether it holds this address. The only question of the frequent path.
  [[nodiscard]] bool holds(const void* memory) const {
    return reinterpret_cast<std::uintptr_t>(memory) - begin_ < bytes_;
  }
  void set(EarlyMemory early) {
    begin_ = early.begin;
    bytes_ = early.end - early.begin;
  }
  // Returns whether the C library may have the memory back: where the program frees as much as it may need.
  bool retire(void* memory) {
    const std::size_t bytes = malloc_usable_size(memory);
    if (retired_.fetch_add(bytes, std::memory_order_relaxed) > most_used_up) return true;
    if (bytes >= least_given_back) give_back(reinterpret_cast<std::uintptr_t>(memory), bytes);
    return false;
  }

 private:
  static void give_back(std::uintptr_t address, std::size_t bytes) {
    const std::uintptr_t first = (address + page - 1) / page * page;
    madvise(reinterpret_cast<void*>(first), (address + bytes) / page * page - first, MADV_DONTNEED);
  }

  std::uintptr_t begin_ = 0;
  std::uintptr_t bytes_ = 0;  // 0 until the heap is settled
  std::atomic<std::size_t> retired_{0};
};

RetiredMemory& retired_memory() {
  static constinit RetiredMemory memory;
  return memory;
}

using Free = void (*)(void*);
using Realloc = void* (*)(void*, std::size_t);

// The C library's function. `meanwhile`: what is called within the look-up, which frees the text of an
// earlier error.
template <typename Function>
Function found(std::atomic<Function>& real, const char* name, Function meanwhile) {
  Function function = real.load(std::memory_order_relaxed);
  if (function == nullptr) [[unlikely]] {
    real.store(meanwhile, std::memory_order_relaxed);
    function = next<Function>(name).get();
    real.store(function, std::memory_order_relaxed);
  }
  return function;
}

void keep(void* /*memory*/) {}

void* move_old(void* memory, std::size_t bytes) {
  void* moved = std::malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, memory, std::min(bytes, malloc_usable_size(memory)));
  std::free(memory);
  return moved;
}

// Whether this thread allocates in the heap that ends here. The first that it gets may be what other threads
// have allocated and this one has freed: the C library keeps seven of a size.
bool allocates_below(std::uintptr_t end, std::uintptr_t most_bytes) {
  constexpr std::size_t most_probes = 16;
  std::array<void*, most_probes> probes{};
  bool is_found = false;
  for (std::size_t i = 0; i < most_probes && !is_found; ++i) {
    probes[i] = std::malloc(smallest);
    const auto address = reinterpret_cast<std::uintptr_t>(probes[i]);
    is_found = address < end && end - address <= most_bytes;
  }
  for (void* const probe : probes) std::free(probe);
  return is_found;
}

}  // namespace

EarlyMemory settle_heap() {
  constexpr std::uintptr_t most_heap = std::uintptr_t{1} << 40U;
  const std::uintptr_t end = heap_end();
  if (!allocates_below(end, most_heap)) return {};
  const std::uintptr_t begin = leave_gap(end);
  if (begin == 0) return {};
  Filler filler(begin);
  filler.use_up(largest);  // ends the part below the gap, whose rest can then be used up
  for (std::size_t bytes = largest; bytes > largest_small; bytes -= bytes / 8) filler.use_up(bytes);
  for (std::size_t bytes = largest_small; bytes >= smallest; bytes -= step) filler.use_up(bytes);
  const EarlyMemory early{std::max(page, end - std::min(end, most_heap)), begin};
  retired_memory().set(early);
  return early;
}

APENET_EXPORT void free(void* memory) noexcept {
  using namespace apenet::shim;
  static constinit std::atomic<Free> real{nullptr};
  if (retired_memory().holds(memory) && !retired_memory().retire(memory)) return;
  found(real, "free", &keep)(memory);
}

APENET_EXPORT void* realloc(void* memory, std::size_t bytes) noexcept {
  using namespace apenet::shim;
  static constinit std::atomic<Realloc> real{nullptr};
  if (retired_memory().holds(memory) && bytes > 0) return move_old(memory, bytes);
  return found<Realloc>(real, "realloc", nullptr)(memory, bytes);
}

}  // namespace apenet::shim
