#include "schema/unit.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "kernel/rate.hpp"
#include "kernel/refuse.hpp"

namespace apenet::schema {

namespace {

constexpr std::int64_t kilo = 1'000;
constexpr std::int64_t mega = 1'000'000;
constexpr std::int64_t giga = 1'000'000'000;
constexpr std::int64_t kibi = std::int64_t{1} << 10;
constexpr std::int64_t mebi = std::int64_t{1} << 20;
constexpr std::int64_t gibi = std::int64_t{1} << 30;

constexpr std::array known_units = {
    Unit{"hz", "Hz", Dimension::frequency, 1},
    Unit{"khz", "kHz", Dimension::frequency, kilo},
    Unit{"mhz", "MHz", Dimension::frequency, mega},
    Unit{"ghz", "GHz", Dimension::frequency, giga},
    Unit{"ps", "ps", Dimension::time, 1},
    Unit{"ns", "ns", Dimension::time, kilo},
    Unit{"us", "us", Dimension::time, mega},
    Unit{"ms", "ms", Dimension::time, giga},
    Unit{"s", "s", Dimension::time, kilo* giga},
    Unit{"bytes", "bytes", Dimension::size, 1},
    Unit{"bits", "bits", Dimension::size, 1, 8},
    Unit{"kib", "KiB", Dimension::size, kibi},
    Unit{"mib", "MiB", Dimension::size, mebi},
    Unit{"kb", "kB", Dimension::size, kilo},
    Unit{"mb", "MB", Dimension::size, mega},
    Unit{"mib_s", "MiB/s", Dimension::data_rate, mebi},
    Unit{"gib_s", "GiB/s", Dimension::data_rate, gibi},
    Unit{"kib_s", "KiB/s", Dimension::data_rate, kibi},
    Unit{"mb_s", "MB/s", Dimension::data_rate, mega},
    Unit{"gb_s", "GB/s", Dimension::data_rate, giga},
    Unit{"gbit_s", "Gbit/s", Dimension::data_rate, giga / 8},
    Unit{"bytes_s", "bytes/s", Dimension::data_rate, 1},
    Unit{"per_second", "per second", Dimension::work_rate, 1},
    Unit{"cycles", "cycles", Dimension::count, 1},
    Unit{"entries", "entries", Dimension::count, 1},
    Unit{"percent", "percent", Dimension::count, 1},
};

// digits * 10^exponent
struct Decimal {
  std::int64_t digits = 0;
  int exponent = 0;
};

// The shortest decimal number that reads as this one: what the file shows. Requires a finite value.
Decimal decimal_of(double value) {
  std::array<char, 32> text{};
  const char* const end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr;
  const char* const mark = std::find<const char*>(text.data(), end, 'e');
  Decimal decimal;
  std::string digits;
  for (const char* at = text.data(); at != mark; ++at) {
    if (*at != '.') digits.push_back(*at);
  }
  std::from_chars(digits.data(), digits.data() + digits.size(), decimal.digits);
  const char* const exponent = mark[1] == '+' ? mark + 2 : mark + 1;
  std::from_chars(exponent, end, decimal.exponent);
  const auto fraction = static_cast<int>(digits.size() - (digits.front() == '-' ? 2 : 1));
  decimal.exponent -= fraction;
  return decimal;
}

Decimal decimal_of(std::int64_t value) {
  return {value, 0};
}

struct Scaled {
  __extension__ using Wide = __int128;
  Wide whole = 0;  // rounded towards zero; limited to what exceeds every limit
  bool is_exact = true;
};

Scaled scaled(Decimal decimal, const Unit& unit) {
  using Wide = Scaled::Wide;
  constexpr Wide limit = Wide{1} << 100U;
  constexpr int ten = 10;
  Wide number = static_cast<Wide>(decimal.digits) * unit.multiplier;
  Wide divisor = unit.divisor;
  for (int power = 0; power < decimal.exponent && -limit < number && number < limit; ++power) number *= ten;
  for (int power = 0; power > decimal.exponent && divisor < limit; --power) divisor *= ten;
  return {number / divisor, number % divisor == 0};
}

struct Limit {
  std::int64_t most = 0;
  std::string_view text;
  std::string_view whole;  // the unit of which a value must be a whole number
};

// The simulated clock ends after 106 days and a run has many steps; a cycle is at least a picosecond.
Limit limit_of(Dimension dimension) {
  constexpr std::int64_t two_to_60 = std::int64_t{1} << 60;
  constexpr std::int64_t thousand_seconds_ps = 1'000'000'000'000'000;
  switch (dimension) {
    case Dimension::time:
      return {thousand_seconds_ps, "1000 seconds", "picoseconds"};
    case Dimension::frequency:
      return {ps_per_second, "1 THz", "hertz"};
    case Dimension::data_rate:
      return {two_to_60, "2^60 bytes per second", ""};
    case Dimension::work_rate:
      return {two_to_60, "2^60 operations per second", "operations"};
    case Dimension::size:
      return {two_to_60, "2^60 bytes", "bytes"};
    case Dimension::count:
      return {two_to_60, "2^60", "ones"};
  }
  return {};
}

std::string text_of(Number value) {
  std::array<char, 32> text{};
  return std::visit(
      [&text](auto number) {
        return std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
      },
      value);
}

}  // namespace

std::span<const Unit> units() {
  return known_units;
}

const Unit& unit_of(std::string_view key) {
  static constexpr Unit none{"", "", Dimension::count, 1};
  const Unit* found = &none;
  for (const Unit& unit : known_units) {
    const bool is_longer = unit.suffix.size() > found->suffix.size();
    if (is_longer && key.size() > unit.suffix.size() + 1 && key.ends_with(unit.suffix) &&
        key[key.size() - unit.suffix.size() - 1] == '_') {
      found = &unit;
    }
  }
  return *found;
}

bool is_measured(Dimension dimension) {
  return dimension != Dimension::size && dimension != Dimension::count;
}

std::string_view base_unit(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return "ps";
    case Dimension::frequency:
      return "Hz";
    case Dimension::data_rate:
      return "bytes per second";
    case Dimension::work_rate:
      return "per second";
    case Dimension::size:
    case Dimension::count:
      break;
  }
  return "";
}

std::int64_t to_base_units(std::string_view key, Number value) {
  const double* measured = std::get_if<double>(&value);
  if (measured != nullptr && !std::isfinite(*measured)) refuse_value(key, text_of(value), "a finite number");
  const Unit& unit = unit_of(key);
  const Limit limit = limit_of(unit.dimension);
  const Scaled base = scaled(std::visit([](auto number) { return decimal_of(number); }, value), unit);
  if (!base.is_exact && unit.dimension != Dimension::data_rate) {
    refuse_value(key, text_of(value), std::string("a whole number of ").append(limit.whole));
  }
  if (!base.is_exact && base.whole < 1) refuse_value(key, text_of(value), "at least one byte per second");
  if (base.whole > limit.most || base.whole < -limit.most) {
    refuse_value(key, text_of(value), std::string("at most ").append(limit.text));
  }
  return static_cast<std::int64_t>(base.whole);
}

std::string from_base_units(std::string_view key, std::int64_t base) {
  const Unit& unit = unit_of(key);
  const double value =
      static_cast<double>(base) * static_cast<double>(unit.divisor) / static_cast<double>(unit.multiplier);
  std::array<char, 64> text{};
  return {text.data(),
          std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr};
}

}  // namespace apenet::schema
