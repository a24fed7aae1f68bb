#include "schema/values.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "kernel/refuse.hpp"

namespace apenet::schema {

namespace {

std::string shown_one(const std::string& text) {
  return '"' + text + '"';
}

template <typename Arithmetic>
std::string shown_one(Arithmetic number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

template <typename Arithmetic>
std::string shown_one(const std::vector<Arithmetic>& numbers) {
  std::string text = "[";
  for (const Arithmetic number : numbers) text += (text.size() > 1 ? ", " : "") + shown_one(number);
  return text + ']';
}

bool is_below(std::string_view key, std::string_view section) {
  return key.size() > section.size() && key.starts_with(section) && key[section.size()] == '.';
}

}  // namespace

Values::Values(Entries entries) : entries_(std::move(entries)), is_known_(entries_.size(), false) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!indices_.emplace(entries_[i].first, i).second) {
      refuse_value(entries_[i].first, shown(entries_[i].second), "one value");
    }
  }
}

const Value* Values::find(const std::string& key) {
  const auto found = indices_.find(key);
  if (found == indices_.end()) return nullptr;
  is_known_[found->second] = true;
  return &entries_[found->second].second;
}

bool Values::has_section(std::string_view section) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [section](const auto& entry) { return is_below(entry.first, section); });
}

std::vector<std::string> Values::tables_below(std::string_view section) const {
  std::vector<std::string> names;
  for (const auto& [key, value] : entries_) {
    if (!is_below(key, section)) continue;
    const std::string_view rest = std::string_view(key).substr(section.size() + 1);
    const std::string name(rest.substr(0, rest.find('.')));
    if (name.size() < rest.size() && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

void Values::require_all_known() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!is_known_[i]) refuse_value(entries_[i].first, shown(entries_[i].second), "a key of this machine");
  }
}

std::string shown(const Value& value) {
  return std::visit([](const auto& one) { return shown_one(one); }, value);
}

}  // namespace apenet::schema
