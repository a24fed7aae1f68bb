// Units: the last part of a key of the machine files names the unit of its value, latency_ns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace apenet::schema {

enum class Dimension : std::uint8_t { time, frequency, data_rate, work_rate, size, count };

struct Unit {
  std::string_view suffix;   // in keys: mhz
  std::string_view printed;  // MHz
  Dimension dimension = Dimension::count;
  // In base units: picoseconds, hertz, bytes per second, operations per second, bytes, one.
  std::int64_t multiplier = 1;
  std::int64_t divisor = 1;
};

// All that keys may name, also those that no key of the schema has: errors convert from them.
[[nodiscard]] std::span<const Unit> units();

// The unit of a key; a key without a unit is a count.
[[nodiscard]] const Unit& unit_of(std::string_view key);

// A value of a key is a whole number unless it has a dimension that is measured.
[[nodiscard]] bool is_measured(Dimension dimension);

// The unit in which the core counts it, as errors print it: "ps". Empty for counts.
[[nodiscard]] std::string_view base_unit(Dimension dimension);

// A number as a machine file writes it.
using Number = std::variant<std::int64_t, double>;

// The value of a key in base units. The arithmetic is exact, on the decimal digits that the file shows. A
// data rate is rounded down, so that nothing is faster than its rate; any other value that is no whole number
// of base units is refused, and so is one that is too large to count. Throws std::invalid_argument: see
// kernel/refuse.hpp.
[[nodiscard]] std::int64_t to_base_units(std::string_view key, Number value);

// The value in the unit of the key, as a machine file writes it: "0.35".
[[nodiscard]] std::string from_base_units(std::string_view key, std::int64_t base);

}  // namespace apenet::schema
