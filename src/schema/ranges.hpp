// Ranges: whether a description keeps to what its list says.
#pragma once

#include <string>

#include "schema/fields.hpp"

namespace apenet::schema {

class RangeCheck final : public Fields {
 public:
  using Fields::Fields;

 private:
  void number(std::string_view key, std::int64_t& base, const Range& range,
              std::string_view meaning) override;
  void numbers(std::string_view key, Numbers& base, const List& list, std::string_view meaning) override;
  void choice(std::string_view key, std::size_t& index, const Choice& names,
              std::string_view meaning) override;
  void words(std::string_view key, std::string& value, const Text& kind, std::string_view meaning) override;
  void ratio(std::string_view key, double& value, const Probability& kind, std::string_view meaning) override;
};

// Throws std::invalid_argument naming the key, its value in base units and what was expected.
template <typename Description>
void require_ranges(const std::string& section, const Description& description) {
  RangeCheck check(section);
  Description visited = description;
  list_fields(check, visited);
}

}  // namespace apenet::schema
