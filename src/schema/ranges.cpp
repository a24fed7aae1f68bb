#include "schema/ranges.hpp"

#include "kernel/refuse.hpp"
#include "schema/unit.hpp"

namespace apenet::schema {

namespace {

std::string in_base_units(std::string_view key, std::int64_t base) {
  const std::string_view unit = base_unit(unit_of(key).dimension);
  return std::to_string(base) + (unit.empty() ? "" : " ") + std::string(unit);
}

void require_within(const std::string& key, std::int64_t base, const Range& range) {
  if (range.is_optional && base == 0) return;  // absent
  const bool is_whole = !is_measured(unit_of(key).dimension);
  if (base < range.least) {
    refuse_value(key, in_base_units(key, base),
                 is_whole ? std::to_string(range.least) + " or more"
                          : (range.least > 0 ? "more than zero" : "zero or more"));
  }
  if (base > range.most)
    refuse_value(key, in_base_units(key, base), "at most " + in_base_units(key, range.most));
}

void require_within(const std::string& key, const Numbers& base, const List& list) {
  if (base.empty() && list.is_optional) return;
  if (base.size() < list.least || base.size() > list.most) {
    const bool is_open = list.most == List{}.most;
    refuse_value(key, std::to_string(base.size()) + " values",
                 std::to_string(list.least) + (is_open ? " or more" : " to " + std::to_string(list.most)));
  }
  for (const std::int64_t one : base) require_within(key, one, list.each);
}

void require_within(const std::string& key, std::size_t index, const Choice& choice) {
  if (index >= choice.names.size()) refuse_value(key, std::to_string(index), "one of its choices");
}

void require_within(const std::string& /*key*/, const std::string& /*text*/, const Text& /*kind*/) {}

// The condition also refuses NaN.
void require_within(const std::string& key, double value, const Probability& /*kind*/) {
  if (!(value >= 0 && value <= 1)) {
    refuse_value(key, std::to_string(value), "a probability, from 0 to 1");
  }
}

}  // namespace

void RangeCheck::visit(std::string_view key, const Field& field, std::string_view /*meaning*/) {
  std::visit([&](const auto& one) { require_within(full(key), one.value, one.allowed); }, field);
}

}  // namespace apenet::schema
