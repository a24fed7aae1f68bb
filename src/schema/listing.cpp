#include "schema/listing.hpp"

#include "schema/unit.hpp"

namespace apenet::schema {

namespace {

void limit(ListedField& field, const Range& range) {
  field.kind = is_measured(unit_of(field.key).dimension) ? FieldKind::measured : FieldKind::whole;
  field.least = range.least;
  if (range.most != Range{}.most) field.most = range.most;
}

// Each lists what a field may be. A key that is optional says so already.
void list(ListedField& entry, const NumberField& number) {
  limit(entry, number.allowed);
  if (entry.is_optional && number.allowed.has_default)
    entry.default_value = from_base_units(entry.key, number.value);
}

void list(ListedField& entry, const NumbersField& numbers) {
  limit(entry, numbers.allowed.each);
  entry.is_list = true;
  entry.list_least = numbers.allowed.least;
  if (numbers.allowed.most != List{}.most) entry.list_most = numbers.allowed.most;
}

void list(ListedField& entry, const ChoiceField& choice) {
  entry.kind = FieldKind::choice;
  entry.choices.assign(choice.allowed.names.begin(), choice.allowed.names.end());
  if (entry.is_optional) entry.default_value = entry.choices.at(choice.value);
}

void list(ListedField& entry, const TextField& text) {
  entry.kind = text.allowed.is_file ? FieldKind::file : FieldKind::text;
}

void list(ListedField& entry, const RatioField& ratio) {
  entry.kind = FieldKind::probability;
  if (entry.is_optional) entry.default_value = ratio.value == 0 ? "0" : std::to_string(ratio.value);
}

BaseValue held_by(const ChoiceField& choice) {
  return std::string(choice.allowed.names.at(choice.value));
}

template <typename OtherField>
BaseValue held_by(const OtherField& field) {
  return field.value;
}

}  // namespace

void Listing::visit(std::string_view key, const Field& field, std::string_view meaning) {
  ListedField entry;
  entry.key = key;
  entry.unit = unit_of(key).printed;
  entry.meaning = meaning;
  std::visit(
      [&entry](const auto& one) {
        entry.is_optional = one.allowed.is_optional;
        list(entry, one);
      },
      field);
  (section() == listed.name ? listed.fields : listed.tables.back().second).push_back(std::move(entry));
}

void Listing::table_names(std::string_view key, std::vector<std::string>& names) {
  listed.tables.emplace_back(key, std::vector<ListedField>{});
  names = {"NAME"};
}

void Reading::visit(std::string_view key, const Field& field, std::string_view /*meaning*/) {
  values_.insert_or_assign(full(key), std::visit([](const auto& one) { return held_by(one); }, field));
}

}  // namespace apenet::schema
