// Routes that a program declares, and that all ranks take together.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace apenet::apelib {

class Library;

// The routes that a rank has declared since it last took some, in the words of an order
// (ipc/route_order.hpp).
class DeclaredRoutes {
 public:
  void add(std::uint32_t from, std::uint32_t to, std::span<const std::uint32_t> directions);
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::span<const std::uint32_t> words() const { return words_; }

 private:
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> words_;
};

// The directions of the hops. Throws Error.
[[nodiscard]] std::vector<std::uint32_t> read_route(Library& library, std::string_view call,
                                                    std::uint32_t from, std::uint32_t to);
// A call of all ranks: the routes that they have declared replace those that were taken before. Throws the
// same Error in all ranks if they are refused. Afterwards none is declared.
void take_routes(Library& library, std::string_view call);

}  // namespace apenet::apelib
