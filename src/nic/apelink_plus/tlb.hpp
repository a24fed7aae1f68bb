// Tlb: the pages whose translation a card has cached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace apenet::apelink_plus {

// A page of a process's memory. Each process has its own address spaces; `space` identifies one.
struct Page {
  std::uint32_t space = 0;
  std::uint64_t number = 0;
  [[nodiscard]] bool operator==(const Page&) const = default;
};

// Fully associative, with least-recently-used replacement.
class Tlb {
 public:
  explicit Tlb(std::size_t entries) : entries_(entries) {}

  // Returns whether the page was cached. Caches it unless there are no entries.
  bool look_up(const Page& page);

  struct State {
    std::vector<Page> pages;  // most recently used first
  };

 private:
  const std::size_t entries_;
  State state_;
};

}  // namespace apenet::apelink_plus
