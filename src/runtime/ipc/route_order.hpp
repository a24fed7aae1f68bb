// Orders about routes, RequestVerb::routes: what a process writes into its memory, and what it reads there.
#pragma once

#include <cstdint>

namespace apenet::ipc {

// An order is of words of 32 bits: RouteOrder, the number of routes, and for each of them its ranks, the
// number of its hops and their directions (2 x dimension, and 1 more for the negative one).
enum class RouteOrder : std::uint32_t {
  read,    // the route of packets between two ranks: one route without hops
  replace  // all routes that were set before by these, together or not at all
};
inline constexpr std::uint32_t word_bytes = 4;
inline constexpr std::uint32_t order_words = 2;  // before the routes
inline constexpr std::uint32_t route_words = 3;  // before the hops
inline constexpr std::int64_t most_order_bytes = std::int64_t{1} << 26;

enum class RouteOutcome : std::uint32_t { done, unsupported, bad_route, deadlock, busy };

// The answer, of as many bytes as there is room for: this, and then a word for each hop, or the text of a
// refusal.
struct RouteAnswer {
  RouteOutcome outcome = RouteOutcome::done;
  std::uint32_t length = 0;  // bytes that follow
};

}  // namespace apenet::ipc
