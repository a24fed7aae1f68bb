#include "network/topology/text_file.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kernel/refuse.hpp"

namespace apenet {

namespace {

bool is_blank(char character) {
  return character == ' ' || character == '\t' || character == '\r';
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  for (const char character : line.substr(0, line.find('#'))) {
    if (!is_blank(character)) {
      word += character;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// Levenshtein's algorithm, row by row.
std::size_t edit_distance(const std::string& one, const std::string& other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t changed = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

TextLines::TextLines(std::string key, std::string_view text) : key_(std::move(key)) {
  std::uint32_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::vector<std::string> words = words_of(text.substr(0, end));
    ++number;
    if (!words.empty()) lines_.push_back({number, std::move(words)});
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

void TextLines::refuse(const Line& line, const std::string& expected) const {
  constexpr std::size_t max_shown = 60;
  std::string text;
  for (const std::string& word : line.words) text += (text.empty() ? "" : " ") + word;
  for (char& character : text) {
    if (static_cast<unsigned char>(character) < ' ' || static_cast<unsigned char>(character) > '~')
      character = '?';
  }
  if (text.size() > max_shown) text = text.substr(0, max_shown) + "...";
  refuse_value(key_ + " line " + std::to_string(line.number), '"' + text + '"', expected);
}

void TextLines::refuse(const std::string& value, const std::string& expected) const {
  refuse_value(key_, value, expected);
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
    if (value > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  }
  return static_cast<std::uint32_t>(value);
}

std::optional<NumberRange> parse_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_number(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return NumberRange{*first, *last};
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t max_length = 64;  // the cost grows with the square of the length
  if (name.size() > max_length) return {};
  std::size_t best = 1 + name.size() / 3;
  std::string nearest;
  for (const std::string& candidate : known) {
    if (candidate.size() > max_length) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance > best || (distance == best && !nearest.empty())) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest.empty() ? std::string() : " (did you mean " + nearest + "?)";
}

}  // namespace apenet
