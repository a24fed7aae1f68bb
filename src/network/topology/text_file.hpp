// TextLines: a small text file as lines of words, for the graph and table files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apenet {

// Words are separated by blanks; # begins a comment; empty lines do not count. Errors name key, line and
// text: `network.graph_file line 3 = "cable a:0": expected two ports`.
class TextLines {
 public:
  struct Line {
    std::uint32_t number = 0;  // from 1
    std::vector<std::string> words;
  };

  TextLines(std::string key, std::string_view text);

  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }
  // Throws std::invalid_argument.
  [[noreturn]] void refuse(const Line& line, const std::string& expected) const;
  // About the file as a whole.
  [[noreturn]] void refuse(const std::string& value, const std::string& expected) const;

 private:
  std::string key_;
  std::vector<Line> lines_;
};

// A whole number below 2^32 in decimal digits, and nothing else.
[[nodiscard]] std::optional<std::uint32_t> parse_number(std::string_view text);

// "7" or "4-7", the latter with first <= last.
struct NumberRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};
[[nodiscard]] std::optional<NumberRange> parse_range(std::string_view text);

// The known name nearest to an unknown one, as " (did you mean NAME?)", or nothing when none is near.
[[nodiscard]] std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

}  // namespace apenet
