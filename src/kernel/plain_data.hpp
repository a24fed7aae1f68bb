// The fields of a struct of plain data, without a list of them: no field can be forgotten.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace apenet {

namespace plain_data {

inline constexpr std::size_t most_fields = 24;

// Stands for a value of any field while the fields are counted. Never evaluated.
struct AnyField {
  template <typename T>
  constexpr operator T() const;
};

template <typename T, std::size_t... index>
consteval bool takes(std::index_sequence<index...> /*fields*/) {
  return requires {
    T{(static_cast<void>(index), AnyField{})...};
  };
}

template <typename T, std::size_t count = most_fields + 1>
consteval std::size_t count_fields() {
  if constexpr (takes<T>(std::make_index_sequence<count>{})) {
    return count;
  } else if constexpr (count == 0) {
    return 0;
  } else {
    return count_fields<T, count - 1>();
  }
}

}  // namespace plain_data

// Requires an aggregate without base classes and C arrays.
template <typename T>
inline constexpr std::size_t field_count = plain_data::count_fields<std::remove_const_t<T>>();

// References to all fields of an aggregate, in the order of their declaration.
template <typename T>
[[nodiscard, gnu::always_inline]] constexpr auto fields_of(T& s) {
  static_assert(std::is_aggregate_v<T>);
  constexpr std::size_t count = field_count<T>;
  static_assert(count <= plain_data::most_fields, "add a line to fields_of for such a struct");
  // One line for each number of fields: C++20 has no shorter way.
  // clang-format off
  if constexpr (count == 0) { return std::tie(); }
  else if constexpr (count == 1) { auto& [a] = s; return std::tie(a); }
  else if constexpr (count == 2) { auto& [a, b] = s; return std::tie(a, b); }
  else if constexpr (count == 3) { auto& [a, b, c] = s; return std::tie(a, b, c); }
  else if constexpr (count == 4) { auto& [a, b, c, d] = s; return std::tie(a, b, c, d); }
  else if constexpr (count == 5) { auto& [a, b, c, d, e] = s; return std::tie(a, b, c, d, e); }
  else if constexpr (count == 6) { auto& [a, b, c, d, e, f] = s; return std::tie(a, b, c, d, e, f); }
  else if constexpr (count == 7) { auto& [a, b, c, d, e, f, g] = s; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (count == 8) { auto& [a, b, c, d, e, f, g, h] = s; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (count == 9) { auto& [a, b, c, d, e, f, g, h, i] = s; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (count == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = s; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (count == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (count == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (count == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (count == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n); }
  else if constexpr (count == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o); }
  else if constexpr (count == 16) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p); }
  else if constexpr (count == 17) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q); }
  else if constexpr (count == 18) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r); }
  else if constexpr (count == 19) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t); }
  else if constexpr (count == 20) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u); }
  else if constexpr (count == 21) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v); }
  else if constexpr (count == 22) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w); }
  else if constexpr (count == 23) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x); }
  else if constexpr (count == 24) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y] = s; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y); }
  // clang-format on
}

// Calls visit(field) for every field.
template <typename T, typename Visit>
[[gnu::always_inline]] constexpr void for_each_field(T& aggregate, const Visit& visit) {
  std::apply([&](auto&... field) { (visit(field), ...); }, fields_of(aggregate));
}

namespace plain_data {

template <typename Visit, typename... Tuples, std::size_t... index>
[[gnu::always_inline]] constexpr bool all(const Visit& visit, std::index_sequence<index...> /*fields*/,
                                          const Tuples&... tuples) {
  const auto one = [&](auto number) { return visit(std::get<decltype(number)::value>(tuples)...); };
  return (one(std::integral_constant<std::size_t, index>{}) && ...);
}

}  // namespace plain_data

// Calls visit(first's field, others' fields...) for every field, until it returns false; then returns false.
template <typename Visit, typename First, typename... Others>
[[gnu::always_inline]] constexpr bool all_fields(const Visit& visit, First& first, Others&... others) {
  return plain_data::all(visit, std::make_index_sequence<field_count<First>>{}, fields_of(first),
                         fields_of(others)...);
}

}  // namespace apenet
