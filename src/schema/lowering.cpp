#include "schema/lowering.hpp"

#include <algorithm>

#include "kernel/refuse.hpp"
#include "schema/unit.hpp"

namespace apenet::schema {

namespace {

Number number_of(const std::string& key, const Value& value) {
  const bool is_whole = !is_measured(unit_of(key).dimension);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  const auto* measured = std::get_if<double>(&value);
  if (measured == nullptr || is_whole)
    refuse_value(key, shown(value), is_whole ? "a whole number" : "a number");
  return *measured;
}

template <typename Kind>
const Kind& value_of(const std::string& key, const Value& value, std::string_view expected) {
  const Kind* found = std::get_if<Kind>(&value);
  if (found == nullptr) refuse_value(key, shown(value), expected);
  return *found;
}

std::string one_of(const std::vector<std::string_view>& names) {
  std::string text = "one of ";
  for (const std::string_view name : names) {
    if (name != names.front()) text += ", ";
    text.append("'").append(name).append("'");
  }
  return text;
}

}  // namespace

const Value* Lowering::find(std::string_view key, bool is_optional) {
  const std::string name = full(key);
  const Value* value = values_.find(name);
  if (value == nullptr && !is_optional && !are_all_optional_) {
    const std::string_view unit = unit_of(key).printed;
    refuse_value(name, "nothing", unit.empty() ? "a value for this key" : "a value in " + std::string(unit));
  }
  return value;
}

void Lowering::number(std::string_view key, std::int64_t& base, const Range& range,
                      std::string_view /*meaning*/) {
  const Value* value = find(key, range.is_optional);
  if (value == nullptr) return;
  base = to_base_units(full(key), number_of(full(key), *value));
}

void Lowering::numbers(std::string_view key, Numbers& base, const List& list, std::string_view /*meaning*/) {
  const Value* value = find(key, list.is_optional);
  if (value == nullptr) return;
  base.clear();
  if (const auto* whole = std::get_if<std::vector<std::int64_t>>(value)) {
    for (const std::int64_t one : *whole) base.push_back(to_base_units(full(key), one));
    return;
  }
  for (const double one : value_of<std::vector<double>>(full(key), *value, "a list of numbers")) {
    base.push_back(to_base_units(full(key), number_of(full(key), one)));
  }
}

void Lowering::choice(std::string_view key, std::size_t& index, const Choice& names,
                      std::string_view /*meaning*/) {
  const Value* value = find(key, names.is_optional);
  if (value == nullptr) return;
  const std::string* name = std::get_if<std::string>(value);
  const auto found =
      name == nullptr ? names.names.end() : std::find(names.names.begin(), names.names.end(), *name);
  if (found == names.names.end()) refuse_value(full(key), shown(*value), one_of(names.names));
  index = static_cast<std::size_t>(found - names.names.begin());
}

void Lowering::words(std::string_view key, std::string& value, const Text& kind,
                     std::string_view /*meaning*/) {
  const Value* given = find(key, kind.is_optional);
  if (given != nullptr) value = value_of<std::string>(full(key), *given, "a text");
}

void Lowering::ratio(std::string_view key, double& value, const Probability& kind,
                     std::string_view /*meaning*/) {
  const Value* given = find(key, kind.is_optional);
  if (given == nullptr) return;
  const auto* whole = std::get_if<std::int64_t>(given);
  value = whole != nullptr ? static_cast<double>(*whole)
                           : value_of<double>(full(key), *given, "a number from 0 to 1");
}

void Lowering::table_names(std::string_view key, std::vector<std::string>& names) {
  names = values_.tables_below(full(key));
}

}  // namespace apenet::schema
