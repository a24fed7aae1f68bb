#include "runtime/shim/interpreter_memory.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace apenet::shim {
namespace {

// PyMemAllocatorEx and PyMemAllocatorDomain of Python's C API.
struct Allocator {
  void* context;
  void* (*malloc)(void* context, std::size_t bytes);
  void* (*calloc)(void* context, std::size_t count, std::size_t bytes);
  void* (*realloc)(void* context, void* memory, std::size_t bytes);
  void (*free)(void* context, void* memory);
};
enum class Domain : int { raw, memory, objects };

template <typename Function>
Function* python(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Small objects have pages of their own, so that when the interpreter frees one, which may depend on
// addresses of before (its cache of attributes does), the larger buffers in the heap stay where they are. The
// interpreter's lock guards it.
class SmallBlocks {
 public:
  static constexpr std::size_t largest = 512;  // as in the interpreter

  // False if the system has no room.
  bool reserve() {
    void* found = mmap(reinterpret_cast<void*>(wished), region_bytes + pool_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return false;
    const auto address = reinterpret_cast<std::uintptr_t>(found);
    begin_ = static_cast<std::byte*>(found) + (pool_bytes - address % pool_bytes);
    return true;
  }
  [[nodiscard]] bool holds(const void* memory) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(memory) - begin_) < region_bytes;
  }
  // nullptr if all are in use.
  void* allocate(std::size_t bytes) {
    Class& own = classes_[class_of(bytes)];
    if (own.free != nullptr) return std::exchange(own.free, own.free->next);
    const std::size_t block_bytes = bytes_of(class_of(bytes));
    if (own.left_bytes < block_bytes) {
      if (used_pools_ == pool_count) return nullptr;
      own = {nullptr, begin_ + used_pools_ * pool_bytes, pool_bytes};
      class_of_pool_[used_pools_++] = static_cast<std::uint8_t>(class_of(bytes));
    }
    own.left_bytes -= block_bytes;
    return std::exchange(own.next, own.next + block_bytes);
  }
  // Both require that it holds the memory.
  void release(void* memory) {
    Class& own = classes_[class_at(memory)];
    own.free = new (memory) Free{own.free};
  }
  [[nodiscard]] std::size_t size(const void* memory) const { return bytes_of(class_at(memory)); }

 private:
  struct Free {
    Free* next;
  };
  struct Class {
    Free* free = nullptr;
    std::byte* next = nullptr;  // next free byte of the pool in use
    std::size_t left_bytes = 0;
  };
  // Between all that the system places by itself, whatever the limit of the stack.
  static constexpr std::uintptr_t wished = std::uintptr_t{0x3000} << 32U;
  static constexpr std::size_t step = 16;
  static constexpr std::size_t pool_bytes = 16384;
  static constexpr std::size_t region_bytes = std::size_t{1} << 30U;  // size in addresses
  static constexpr std::size_t pool_count = region_bytes / pool_bytes;

  static std::size_t class_of(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) - 1) / step; }
  static std::size_t bytes_of(std::size_t number) { return (number + 1) * step; }
  [[nodiscard]] std::size_t class_at(const void* memory) const {
    return class_of_pool_[static_cast<std::size_t>(static_cast<const std::byte*>(memory) - begin_) /
                          pool_bytes];
  }

  std::byte* begin_ = nullptr;
  std::size_t used_pools_ = 0;
  std::array<Class, largest / step> classes_;
  std::array<std::uint8_t, pool_count> class_of_pool_{};
};

// The context of the functions below, one for each domain.
struct Settled {
  Allocator
      own;  // the interpreter's: its functions recognise their blocks, and leave others to the C library
  SmallBlocks* small;
};

void* allocate(void* context, std::size_t bytes) {
  SmallBlocks& small = *static_cast<const Settled*>(context)->small;
  void* memory = bytes <= SmallBlocks::largest ? small.allocate(bytes) : nullptr;
  return memory != nullptr ? memory : std::malloc(bytes);
}

void* allocate_cleared(void* context, std::size_t count, std::size_t bytes) {
  if (bytes != 0 && count > SmallBlocks::largest / bytes) return std::calloc(count, bytes);
  void* memory = allocate(context, count * bytes);
  if (memory != nullptr) std::memset(memory, 0, count * bytes);
  return memory;
}

void* reallocate(void* context, void* memory, std::size_t bytes) {
  const Settled& settled = *static_cast<const Settled*>(context);
  if (memory == nullptr) return allocate(context, bytes);
  if (!settled.small->holds(memory)) return settled.own.realloc(settled.own.context, memory, bytes);
  void* moved = allocate(context, bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, memory, std::min(bytes, settled.small->size(memory)));
  settled.small->release(memory);
  return moved;
}

void release(void* context, void* memory) {
  const Settled& settled = *static_cast<const Settled*>(context);
  if (settled.small->holds(memory)) {
    settled.small->release(memory);
  } else {
    settled.own.free(settled.own.context, memory);
  }
}

bool has_translating_card(const ipc::Client& client) {
  const ipc::Header& header = client.header();
  const auto* const end = std::begin(header.rails) + header.rail_count;
  return std::any_of(std::begin(header.rails), end,
                     [](const ipc::Rail& rail) { return rail.translates_addresses != 0; });
}

}  // namespace

bool settle_interpreter(const ipc::Client& client) {
  const auto get = python<void(Domain, Allocator*)>("PyMem_GetAllocator");
  const auto set = python<void(Domain, Allocator*)>("PyMem_SetAllocator");
  const auto version = python<const char*()>("Py_GetVersion");
  const auto holds_lock = python<int()>("PyGILState_Check");
  if (get == nullptr || set == nullptr || version == nullptr || holds_lock == nullptr) return false;
  if (!has_translating_card(client)) return false;
  // Without the lock, as in builds of free threads, another thread may allocate meanwhile.
  if (holds_lock() == 0 || std::strstr(version(), "free-threading") != nullptr) return true;
  auto* const small = new SmallBlocks;  // as long as the interpreter
  if (!small->reserve()) return true;
  for (const Domain domain : {Domain::memory, Domain::objects}) {
    Allocator own{};
    get(domain, &own);
    // A hook, such as that of tracemalloc or PYTHONMALLOC=debug, knows only what it has allocated.
    if (own.context != nullptr) continue;
    Allocator settled{new Settled{own, small}, allocate, allocate_cleared, reallocate, release};
    set(domain, &settled);
  }
  return true;
}

}  // namespace apenet::shim
