// Ranges: whether a description keeps to what its list says.
#pragma once

#include <string>

#include "schema/fields.hpp"

namespace apenet::schema {

class RangeCheck final : public Fields {
 public:
  using Fields::Fields;

 private:
  void visit(std::string_view key, const Field& field, std::string_view meaning) override;
};

// Throws std::invalid_argument naming the key, its value in base units and what was expected.
template <typename Description>
void require_ranges(const std::string& section, const Description& description) {
  RangeCheck check(section);
  Description visited = description;
  list_fields(check, visited);
}

}  // namespace apenet::schema
