// The fields of a struct of plain data, without a list of them: no field can be forgotten.
#pragma once

#include <cstddef>
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

// Between `least` and `most`. A struct takes any number of values up to that of its fields.
template <typename T, std::size_t least = 0, std::size_t most = most_fields + 1>
consteval std::size_t count_fields() {
  constexpr std::size_t middle = (least + most + 1) / 2;
  if constexpr (least == most) {
    return least;
  } else if constexpr (takes<T>(std::make_index_sequence<middle>{})) {
    return count_fields<T, middle, most>();
  } else {
    return count_fields<T, least, middle - 1>();
  }
}

}  // namespace plain_data

// Requires an aggregate without base classes and C arrays, whose fields have default values.
template <typename T>
inline constexpr std::size_t field_count = plain_data::count_fields<std::remove_const_t<T>>();

namespace plain_data {

// Returns visit(all fields of the aggregate, in the order of their declaration).
template <typename T, typename Visit>
[[gnu::always_inline]] constexpr auto with_fields(T& s, const Visit& visit) {
  static_assert(std::is_aggregate_v<T>);
  constexpr std::size_t count = field_count<T>;
  static_assert(
      requires { T{}; }, "the count needs fields with default values");
  static_assert((count == 0) == std::is_empty_v<T>);
  static_assert(count <= most_fields, "add a line to with_fields for such a struct");
  // One line for each number of fields: C++20 has no shorter way.
  // clang-format off
  if constexpr (count == 0) { return visit(); }
  else if constexpr (count == 1) { auto& [a] = s; return visit(a); }
  else if constexpr (count == 2) { auto& [a, b] = s; return visit(a, b); }
  else if constexpr (count == 3) { auto& [a, b, c] = s; return visit(a, b, c); }
  else if constexpr (count == 4) { auto& [a, b, c, d] = s; return visit(a, b, c, d); }
  else if constexpr (count == 5) { auto& [a, b, c, d, e] = s; return visit(a, b, c, d, e); }
  else if constexpr (count == 6) { auto& [a, b, c, d, e, f] = s; return visit(a, b, c, d, e, f); }
  else if constexpr (count == 7) { auto& [a, b, c, d, e, f, g] = s; return visit(a, b, c, d, e, f, g); }
  else if constexpr (count == 8) { auto& [a, b, c, d, e, f, g, h] = s; return visit(a, b, c, d, e, f, g, h); }
  else if constexpr (count == 9) { auto& [a, b, c, d, e, f, g, h, i] = s; return visit(a, b, c, d, e, f, g, h, i); }
  else if constexpr (count == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = s; return visit(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (count == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = s; return visit(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (count == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (count == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (count == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n); }
  else if constexpr (count == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o); }
  else if constexpr (count == 16) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p); }
  else if constexpr (count == 17) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q); }
  else if constexpr (count == 18) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r); }
  else if constexpr (count == 19) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t); }
  else if constexpr (count == 20) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u); }
  else if constexpr (count == 21) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v); }
  else if constexpr (count == 22) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w); }
  else if constexpr (count == 23) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x); }
  else if constexpr (count == 24) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y] = s; return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y); }
  // clang-format on
}

}  // namespace plain_data

// Calls visit(field) for every field.
template <typename T, typename Visit>
[[gnu::always_inline]] constexpr void for_each_field(T& aggregate, const Visit& visit) {
  plain_data::with_fields(aggregate, [&](auto&... field) { (visit(field), ...); });
}

// Calls visit(first's field, others' fields...) for every field, until it returns false; then returns false.
template <typename Visit, typename T>
[[gnu::always_inline]] constexpr bool all_fields(const Visit& visit, T& aggregate) {
  return plain_data::with_fields(aggregate, [&](auto&... field) { return (visit(field) && ...); });
}
template <typename Visit, typename T, typename Other>
[[gnu::always_inline]] constexpr bool all_fields(const Visit& visit, T& first, Other& second) {
  return plain_data::with_fields(first, [&](auto&... a) {
    return plain_data::with_fields(second, [&](auto&... b) { return (visit(a, b) && ...); });
  });
}
template <typename Visit, typename T, typename Other, typename Third>
[[gnu::always_inline]] constexpr bool all_fields(const Visit& visit, T& first, Other& second, Third& third) {
  return plain_data::with_fields(first, [&](auto&... a) {
    return plain_data::with_fields(second, [&](auto&... b) {
      return plain_data::with_fields(third, [&](auto&... c) { return (visit(a, b, c) && ...); });
    });
  });
}

}  // namespace apenet
