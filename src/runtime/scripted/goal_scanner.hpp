// GoalScanner: splits a GOAL file into words, and reports errors with their line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace apenet {

// Passes over a text once. Blanks and comments (// to the end of the line, /* */) separate words. A line end
// is significant, because it ends a statement.
class GoalScanner {
 public:
  GoalScanner(std::string_view text, const std::string& file)
      : at_(text.data()), end_(text.data() + text.size()), file_(file) {}

  [[nodiscard]] const char* position() const { return at_; }
  [[nodiscard]] std::uint32_t line() const { return line_; }

  // Skips blanks and comments up to the next word of this line.
  void skip_blanks();
  // Also skips line ends.
  void skip_lines();
  // What a comment says of an operation: "// [@ADDRESS[ gpu]] [in CALL [CALL]]", written by `apenet run
  // --record`: its buffer, and the MPI calls that began it and saw its end. CALL is
  // MPI_Send[@PLACE][#NUMBER].
  struct Call {
    std::string_view name;     // with its place
    std::uint32_t number = 0;  // among the rank's calls of this function, from 1; 0: not known
  };
  struct Remark {
    std::uint64_t address = 0;
    bool in_gpu = false;
    Call begun_in;
    Call ended_in;
  };
  // The last such comment since the last call; empty if there was none.
  [[nodiscard]] Remark take_remark() { return std::exchange(remark_, {}); }
  [[nodiscard]] bool at_end() const { return at_ == end_; }
  [[nodiscard]] bool at_end_of_statement() const { return at_ == end_ || *at_ == '\n' || *at_ == '}'; }

  // Each takes the named element, if it comes next, and the blanks after it.
  bool take(char symbol);
  // A name: a letter or _, then letters, digits and _. Empty if none comes next.
  [[nodiscard]] std::string_view take_name();
  // A whole number from least to most. Throws an error that expects `what` otherwise.
  [[nodiscard]] std::int64_t take_number(const char* what, std::int64_t least, std::int64_t most);

  // Throws std::invalid_argument: "FILE:LINE = the next word: expected `expected`".
  [[noreturn]] void refuse(const std::string& expected) const;
  [[noreturn]] void refuse(std::string_view found, const std::string& expected) const {
    refuse_line(line_, found, expected);
  }
  [[noreturn]] void refuse_line(std::uint32_t line, std::string_view found,
                                const std::string& expected) const;

 private:
  void skip_comment();
  void read_remark(std::string_view text);

  const char* at_;
  const char* end_;
  const std::string& file_;
  std::uint32_t line_ = 1;
  Remark remark_;
};

}  // namespace apenet
