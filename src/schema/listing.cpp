#include "schema/listing.hpp"

#include "schema/unit.hpp"

namespace apenet::schema {

namespace {

ListedField begin(std::string_view key, std::string_view meaning) {
  ListedField field;
  field.key = key;
  field.unit = unit_of(key).printed;
  field.meaning = meaning;
  return field;
}

void limit(ListedField& field, const Range& range) {
  field.kind = is_measured(unit_of(field.key).dimension) ? Kind::measured : Kind::whole;
  field.least = range.least;
  field.is_optional = range.is_optional;
  if (range.most != Range{}.most) field.most = range.most;
}

}  // namespace

void Listing::number(std::string_view key, std::int64_t& base, const Range& range, std::string_view meaning) {
  ListedField field = begin(key, meaning);
  limit(field, range);
  if (range.is_optional && range.has_default) field.default_value = from_base_units(key, base);
  add(std::move(field));
}

void Listing::numbers(std::string_view key, Numbers& /*base*/, const List& list, std::string_view meaning) {
  ListedField field = begin(key, meaning);
  limit(field, list.each);
  field.is_list = true;
  field.list_least = list.least;
  if (list.most != List{}.most) field.list_most = list.most;
  field.is_optional = list.is_optional;
  add(std::move(field));
}

void Listing::choice(std::string_view key, std::size_t& index, const Choice& names,
                     std::string_view meaning) {
  ListedField field = begin(key, meaning);
  field.kind = Kind::choice;
  field.choices.assign(names.names.begin(), names.names.end());
  field.is_optional = names.is_optional;
  if (names.is_optional) field.default_value = field.choices.at(index);
  add(std::move(field));
}

void Listing::words(std::string_view key, std::string& /*value*/, const Text& kind,
                    std::string_view meaning) {
  ListedField field = begin(key, meaning);
  field.kind = kind.is_file ? Kind::file : Kind::text;
  field.is_optional = kind.is_optional;
  add(std::move(field));
}

void Listing::ratio(std::string_view key, double& value, const Probability& kind, std::string_view meaning) {
  ListedField field = begin(key, meaning);
  field.kind = Kind::probability;
  field.is_optional = kind.is_optional;
  if (kind.is_optional) field.default_value = value == 0 ? "0" : std::to_string(value);
  add(std::move(field));
}

void Listing::table_names(std::string_view key, std::vector<std::string>& names) {
  listed.tables.emplace_back(key, std::vector<ListedField>{});
  names = {"NAME"};
}

void Listing::add(ListedField field) {
  (section() == listed.name ? listed.fields : listed.tables.back().second).push_back(std::move(field));
}

void Reading::number(std::string_view key, std::int64_t& base, const Range& /*range*/,
                     std::string_view /*meaning*/) {
  set(key, base);
}

void Reading::numbers(std::string_view key, Numbers& base, const List& /*list*/,
                      std::string_view /*meaning*/) {
  set(key, base);
}

void Reading::choice(std::string_view key, std::size_t& index, const Choice& names,
                     std::string_view /*meaning*/) {
  set(key, std::string(names.names.at(index)));
}

void Reading::words(std::string_view key, std::string& value, const Text& /*kind*/,
                    std::string_view /*meaning*/) {
  set(key, value);
}

void Reading::ratio(std::string_view key, double& value, const Probability& /*kind*/,
                    std::string_view /*meaning*/) {
  set(key, value);
}

}  // namespace apenet::schema
