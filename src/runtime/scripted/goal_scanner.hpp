// GoalScanner: the words of a GOAL file, and the errors that name a line of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace apenet {

// Walks through a text once. Blanks and comments (// to the end of the line, /* */) lie between words; ends
// of lines count, because they end statements.
class GoalScanner {
 public:
  GoalScanner(std::string_view text, const std::string& file)
      : at_(text.data()), end_(text.data() + text.size()), file_(file) {}

  [[nodiscard]] const char* position() const { return at_; }
  [[nodiscard]] std::uint32_t line() const { return line_; }
  [[nodiscard]] const std::string& file() const { return file_; }

  // Past blanks and comments, up to the next word of this line.
  void skip_blanks();
  // The same, past ends of lines too.
  void skip_lines();
  // The address of the last comment "// @ADDRESS", as it is written by `apenet run --record`; 0: there was
  // none since it was last asked for.
  [[nodiscard]] std::uint64_t take_address() { return std::exchange(address_, 0); }
  [[nodiscard]] bool at_end() const { return at_ == end_; }
  [[nodiscard]] bool at_end_of_statement() const { return at_ == end_ || *at_ == '\n' || *at_ == '}'; }

  // Each takes what it names, if it comes next, and the blanks behind it.
  bool take(char symbol);
  // A name: a letter or _, then letters, digits and _. Empty: there is none.
  [[nodiscard]] std::string_view take_name();
  // A whole number from least to most, or throws saying that `what` was expected.
  [[nodiscard]] std::int64_t take_number(const char* what, std::int64_t least, std::int64_t most);

  // Throws std::invalid_argument: FILE:LINE = what comes next: expected `expected`.
  [[noreturn]] void refuse(const std::string& expected) const;
  [[noreturn]] void refuse(std::string_view found, const std::string& expected) const {
    refuse_line(line_, found, expected);
  }
  [[noreturn]] void refuse_line(std::uint32_t line, std::string_view found,
                                const std::string& expected) const;

 private:
  void skip_comment();

  const char* at_;
  const char* end_;
  const std::string& file_;
  std::uint32_t line_ = 1;
  std::uint64_t address_ = 0;
};

}  // namespace apenet
