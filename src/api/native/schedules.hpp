// The schedules of collective calls over messages between pairs: who sends to whom, in which order. They
// depend on nothing but the number of places, so a result has the same bits in every run. A caller maps
// places to its ranks, and moves the data.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace apenet::native {

// Barrier by dissemination: after round k a place has heard, directly or not, of the 2^k places below it.
// exchange(up, down): sends to `up`, receives from `down`, and returns when both are done.
template <typename Exchange>
void disseminate(std::uint32_t place, std::uint32_t places, Exchange exchange) {
  for (std::uint32_t distance = 1; distance < places; distance *= 2)
    exchange((place + distance) % places, (place + places - distance) % places);
}

// A place of a binomial tree whose root is place 0.
struct TreePlace {
  std::uint32_t parent = 0;             // the root's parent is the root
  std::vector<std::uint32_t> children;  // the one with the largest subtree first
};

[[nodiscard]] inline TreePlace binomial_tree(std::uint32_t place, std::uint32_t places) {
  const std::uint32_t reach =
      place == 0 ? std::bit_ceil(places) : place & (~place + 1);  // the subtree's size
  TreePlace found{.parent = place == 0 ? 0 : place - reach, .children = {}};
  for (std::uint32_t distance = reach / 2; distance > 0; distance /= 2) {
    if (place + distance < places) found.children.push_back(place + distance);
  }
  return found;
}

// Reduction to all by recursive doubling. Places beyond the largest power of two give their values to a
// partner within it and get the result from there. `values` has
//   send(place), receive_result(place)  of the places beyond;
//   take(place)                         receives the values of a higher place, and combines;
//   trade(place)                        exchanges with a place, and combines; the lower place's values come
//   first.
template <typename Values>
void double_recursively(std::uint32_t place, std::uint32_t places, Values& values) {
  const std::uint32_t core = std::bit_floor(places);
  if (place >= core) {
    values.send(place - core);
    values.receive_result(place - core);
    return;
  }
  const bool has_partner = place + core < places;
  if (has_partner) values.take(place + core);
  for (std::uint32_t distance = 1; distance < core; distance *= 2) values.trade(place ^ distance);
  if (has_partner) values.send(place + core);
}

}  // namespace apenet::native
