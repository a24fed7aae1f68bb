#include "runtime/shim/pass_times.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace apenet::shim {

bool PassTimes::is_selected(std::uint64_t number) const {
  // Fibonacci hashing: the high half of the product mixes all bits of the number.
  const std::uint64_t mixed = (number * 0x9e3779b97f4a7c15U) >> 32U;
  return (mixed & ((std::uint64_t{1} << halvings_) - 1)) == 0;
}

void PassTimes::add(const Pass& pass) {
  if (!is_mapped_) {
    is_mapped_ = true;
    void* memory =
        mmap(nullptr, most_passes * sizeof(Pass), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) passes_ = static_cast<Pass*>(memory);
  }
  if (passes_ == nullptr || !is_selected(pass.number)) return;
  while (count_ == most_passes) {
    ++halvings_;
    const Pass* end = std::remove_if(passes_, passes_ + count_,
                                     [this](const Pass& kept) { return !is_selected(kept.number); });
    count_ = static_cast<std::size_t>(end - passes_);
    if (!is_selected(pass.number)) return;
  }
  passes_[count_++] = pass;
}

}  // namespace apenet::shim
