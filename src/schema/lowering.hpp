// Lowering: from the values of a machine file to a description in base units.
#pragma once

#include <string>

#include "schema/fields.hpp"
#include "schema/values.hpp"

namespace apenet::schema {

class Lowering final : public Fields {
 public:
  // With are_all_optional, a field without a key in the section keeps its value.
  Lowering(Values& values, std::string section, bool are_all_optional)
      : Fields(std::move(section)), values_(values), are_all_optional_(are_all_optional) {}

 private:
  void visit(std::string_view key, const Field& field, std::string_view meaning) override;
  void table_names(std::string_view key, std::vector<std::string>& names) override;

  Values& values_;
  bool are_all_optional_;
};

// Reads the fields of a section. Throws std::invalid_argument naming the key, its value and what was
// expected.
template <typename Description>
void lower(Values& values, const std::string& section, Description& description) {
  Lowering lowering(values, section, false);
  list_fields(lowering, description);
}

// The same for a section that says only what differs.
template <typename Description>
void lower_differences(Values& values, const std::string& section, Description& description) {
  Lowering lowering(values, section, true);
  list_fields(lowering, description);
}

}  // namespace apenet::schema
