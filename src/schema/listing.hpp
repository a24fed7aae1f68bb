// Listing: the fields of a description as data, for whoever checks or documents machine files; and what a
// description holds, for tests and tools.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "schema/fields.hpp"

namespace apenet::schema {

enum class FieldKind : std::uint8_t { whole, measured, probability, choice, text, file };

// One key of a section, as a machine file writes it.
struct ListedField {
  std::string key;
  FieldKind kind = FieldKind::whole;
  std::string unit;  // as it is printed; empty where the key names none
  std::string meaning;
  std::int64_t least = 0;  // least whole number; for measured numbers, 1 means more than zero
  std::optional<std::int64_t> most;
  bool is_list = false;
  std::size_t list_least = 1;
  std::optional<std::size_t> list_most;
  std::vector<std::string> choices;
  bool is_optional = false;
  std::string default_value;  // for an optional field that has a default, in the unit of the key
};

struct Section {
  std::string name;
  std::vector<ListedField> fields;
  std::vector<std::pair<std::string, std::vector<ListedField>>> tables;  // key.NAME, the name is the file's
};

class Listing final : public Fields {
 public:
  explicit Listing(const std::string& name) : Fields(name) { listed.name = name; }
  Section listed;

 private:
  void visit(std::string_view key, const Field& field, std::string_view meaning) override;
  void table_names(std::string_view key, std::vector<std::string>& names) override;
};

template <typename Description>
[[nodiscard]] Section listed(const std::string& name) {
  Listing listing(name);
  Description description;
  list_fields(listing, description);
  return std::move(listing.listed);
}

using BaseValue = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;
using BaseValues = std::map<std::string, BaseValue>;  // by key with its section

class Reading final : public Fields {
 public:
  Reading(std::string section, BaseValues& values) : Fields(std::move(section)), values_(values) {}

 private:
  void visit(std::string_view key, const Field& field, std::string_view meaning) override;

  BaseValues& values_;
};

// Adds what the description holds, in base units.
template <typename Description>
void read(const std::string& section, const Description& description, BaseValues& values) {
  Reading reading(section, values);
  Description visited = description;
  list_fields(reading, visited);
}

}  // namespace apenet::schema
