// Tlb: the pages whose translation a card remembers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace apenet {

// A page of the memory of a process. Processes have address spaces of their own; `space` tells them apart.
struct Page {
  std::uint32_t space = 0;
  std::uint64_t number = 0;
  [[nodiscard]] bool operator==(const Page&) const = default;
};

// Fully associative, with the least recently used entry replaced.
class Tlb {
 public:
  explicit Tlb(std::size_t entries) : entries_(entries) {}

  // Whether the page was there; it is now, unless there are no entries.
  bool look_up(const Page& page);

 private:
  std::size_t entries_;
  std::vector<Page> pages_;  // in the order of their use, the latest first
};

}  // namespace apenet
