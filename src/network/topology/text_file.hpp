// TextLines: a small text file as lines of words, used for graph and table files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apenet {

// Words are separated by blanks; # starts a comment; empty lines are skipped. Errors name key, line and text:
// `network.graph_file line 3 = "cable a:0": expected two ports`.
class TextLines {
 public:
  struct Line {
    std::uint32_t number = 0;  // starting at 1
    std::vector<std::string> words;
  };

  TextLines(std::string key, std::string_view text);

  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }
  // Throws std::invalid_argument.
  [[noreturn]] void refuse(const Line& line, const std::string& expected) const;
  // Throws an error about the file as a whole.
  [[noreturn]] void refuse(const std::string& value, const std::string& expected) const;

 private:
  std::string key_;
  std::vector<Line> lines_;
};

// Parses a decimal number below 2^32, without any other characters.
[[nodiscard]] std::optional<std::uint32_t> parse_number(std::string_view text);

// "7" or "4-7"; in the latter, first <= last.
struct NumberRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};
[[nodiscard]] std::optional<NumberRange> parse_range(std::string_view text);

// Returns the known name most similar to an unknown one, as " (did you mean NAME?)"; empty if none is
// similar.
[[nodiscard]] std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

}  // namespace apenet
