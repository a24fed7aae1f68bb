#include "schema/ranges.hpp"

#include "kernel/refuse.hpp"
#include "schema/unit.hpp"

namespace apenet::schema {

namespace {

std::string in_base_units(std::string_view key, std::int64_t base) {
  const std::string_view unit = base_unit(unit_of(key).dimension);
  return std::to_string(base) + (unit.empty() ? "" : " ") + std::string(unit);
}

}  // namespace

void RangeCheck::number(std::string_view key, std::int64_t& base, const Range& range,
                        std::string_view /*meaning*/) {
  if (range.is_optional && base == 0) return;  // what is absent
  const std::string name = full(key);
  const bool is_whole = !is_measured(unit_of(key).dimension);
  if (base < range.least) {
    refuse_value(name, in_base_units(key, base),
                 is_whole ? std::to_string(range.least) + " or more"
                          : (range.least > 0 ? "more than zero" : "zero or more"));
  }
  if (base > range.most)
    refuse_value(name, in_base_units(key, base), "at most " + in_base_units(key, range.most));
}

void RangeCheck::numbers(std::string_view key, Numbers& base, const List& list, std::string_view meaning) {
  if (base.empty() && list.is_optional) return;
  if (base.size() < list.least || base.size() > list.most) {
    const bool is_open = list.most == List{}.most;
    refuse_value(full(key), std::to_string(base.size()) + " values",
                 std::to_string(list.least) + (is_open ? " or more" : " to " + std::to_string(list.most)));
  }
  for (std::int64_t one : base) number(key, one, list.each, meaning);
}

void RangeCheck::choice(std::string_view key, std::size_t& index, const Choice& names,
                        std::string_view /*meaning*/) {
  if (index >= names.names.size()) {
    refuse_value(full(key), std::to_string(index), "one of its choices");
  }
}

void RangeCheck::words(std::string_view /*key*/, std::string& /*value*/, const Text& /*kind*/,
                       std::string_view /*meaning*/) {}

// Written so that what is not a number is refused, too.
void RangeCheck::ratio(std::string_view key, double& value, const Probability& /*kind*/,
                       std::string_view /*meaning*/) {
  if (!(value >= 0 && value <= 1)) {
    refuse_value(full(key), std::to_string(value), "a probability, from 0 to 1");
  }
}

}  // namespace apenet::schema
