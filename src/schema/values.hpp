// Values: what a machine file says, flat: "bus.clock_mhz" = 133.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace apenet::schema {

using Value = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;
using Entries =
    std::vector<std::pair<std::string, Value>>;  // key with its section, value; in the file's order

class Values {
 public:
  explicit Values(Entries entries);

  // Null where there is none. A value that was asked for counts as known.
  [[nodiscard]] const Value* find(const std::string& key);
  [[nodiscard]] bool has(const std::string& key) const { return indices_.count(key) > 0; }
  // Whether any key begins with "section.".
  [[nodiscard]] bool has_section(std::string_view section) const;
  // The names in section.NAME.key, each once.
  [[nodiscard]] std::vector<std::string> tables_below(std::string_view section) const;
  // Throws std::invalid_argument with the first key that nobody has asked for.
  void require_all_known() const;

 private:
  Entries entries_;
  std::map<std::string, std::size_t, std::less<>> indices_;
  std::vector<bool> is_known_;
};

[[nodiscard]] std::string shown(const Value& value);

}  // namespace apenet::schema
