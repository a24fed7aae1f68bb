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

// Each sets a field to the value of its key.
void set(const NumberField& field, const std::string& key, const Value& value) {
  field.value = to_base_units(key, number_of(key, value));
}

void set(const NumbersField& field, const std::string& key, const Value& value) {
  field.value.clear();
  if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (const std::int64_t one : *whole) field.value.push_back(to_base_units(key, one));
    return;
  }
  for (const double one : value_of<std::vector<double>>(key, value, "a list of numbers")) {
    field.value.push_back(to_base_units(key, number_of(key, one)));
  }
}

void set(const ChoiceField& field, const std::string& key, const Value& value) {
  const std::vector<std::string_view>& names = field.allowed.names;
  const std::string* name = std::get_if<std::string>(&value);
  const auto found = name == nullptr ? names.end() : std::find(names.begin(), names.end(), *name);
  if (found == names.end()) refuse_value(key, shown(value), one_of(names));
  field.value = static_cast<std::size_t>(found - names.begin());
}

void set(const TextField& field, const std::string& key, const Value& value) {
  field.value = value_of<std::string>(key, value, "a text");
}

void set(const RatioField& field, const std::string& key, const Value& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  field.value =
      whole != nullptr ? static_cast<double>(*whole) : value_of<double>(key, value, "a number from 0 to 1");
}

}  // namespace

void Lowering::visit(std::string_view key, const Field& field, std::string_view /*meaning*/) {
  const std::string name = full(key);
  const Value* value = values_.find(name);
  std::visit(
      [&](const auto& one) {
        if (value != nullptr) {
          set(one, name, *value);
        } else if (!one.allowed.is_optional && !are_all_optional_) {
          const std::string_view unit = unit_of(key).printed;
          refuse_value(name, "nothing",
                       unit.empty() ? "a value for this key" : "a value in " + std::string(unit));
        }
      },
      field);
}

void Lowering::table_names(std::string_view key, std::vector<std::string>& names) {
  names = values_.tables_below(full(key));
}

}  // namespace apenet::schema
