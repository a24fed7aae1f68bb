#include "runtime/scripted/goal_scanner.hpp"

#include <algorithm>
#include <charconv>

#include "kernel/refuse.hpp"

namespace apenet {

namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

// "MPI_Send", or with its place in the program "MPI_Send@exchange.c:12".
bool is_name_of_call(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  const std::string_view place = at == std::string_view::npos ? "?" : text.substr(at + 1);
  return !name.empty() && std::all_of(name.begin(), name.end(), is_name) && !place.empty() &&
         std::all_of(place.begin(), place.end(), [](unsigned char c) { return c > ' ' && c != 0x7f; });
}

// The name is empty if the text is no call. A # in the name of a file is followed by its line, ":12".
GoalScanner::Call call_of(std::string_view text) {
  GoalScanner::Call call{.name = text};
  const char* const end = text.data() + text.size();
  const std::size_t mark = text.rfind('#');
  if (mark != std::string_view::npos &&
      std::from_chars(text.data() + mark + 1, end, call.number).ptr == end) {
    call.name = text.substr(0, mark);
  } else {
    call.number = 0;
  }
  return is_name_of_call(call.name) ? call : GoalScanner::Call{};
}

}  // namespace

void GoalScanner::skip_comment() {
  if (at_[1] == '/') {
    const char* text = at_ + 2;
    at_ = std::find(at_, end_, '\n');
    read_remark({text, static_cast<std::size_t>(std::find(text, at_, '\r') - text)});
    return;
  }
  const std::uint32_t begin = line_;
  at_ += 2;
  while (end_ - at_ >= 2 && !(at_[0] == '*' && at_[1] == '/')) {
    if (*at_++ == '\n') ++line_;
  }
  if (end_ - at_ < 2) refuse_line(begin, "/*", "a comment that ends with */");
  at_ += 2;
}

void GoalScanner::read_remark(std::string_view text) {
  constexpr std::string_view address = " @0x";
  constexpr std::string_view gpu = " gpu";
  constexpr std::string_view calls = " in ";
  if (text.starts_with(address)) {
    const char* const end = text.data() + text.size();
    const char* const word = std::from_chars(text.data() + address.size(), end, remark_.address, 16).ptr;
    text = {word, static_cast<std::size_t>(end - word)};
    remark_.in_gpu = text == gpu || text.starts_with(std::string(gpu) + std::string(calls));
    if (remark_.in_gpu) text.remove_prefix(gpu.size());
  }
  if (!text.starts_with(calls)) return;
  text.remove_prefix(calls.size());
  const std::size_t first = text.find(' ');
  const Call begun = call_of(text.substr(0, first));
  const Call ended = first == std::string_view::npos ? begun : call_of(text.substr(first + 1));
  if (begun.name.empty() || ended.name.empty()) return;
  remark_.begun_in = begun;
  remark_.ended_in = ended;
}

void GoalScanner::skip_blanks() {
  while (at_ != end_) {
    if (*at_ == ' ' || *at_ == '\t' || *at_ == '\r') {
      ++at_;
    } else if (*at_ == '/' && end_ - at_ >= 2 && (at_[1] == '/' || at_[1] == '*')) {
      skip_comment();
    } else {
      return;
    }
  }
}

void GoalScanner::skip_lines() {
  for (skip_blanks(); at_ != end_ && *at_ == '\n'; skip_blanks()) {
    ++line_;
    ++at_;
  }
}

bool GoalScanner::take(char symbol) {
  if (at_ == end_ || *at_ != symbol) return false;
  ++at_;
  skip_blanks();
  return true;
}

std::string_view GoalScanner::take_name() {
  const char* begin = at_;
  if (at_ != end_ && is_name(*at_) && !is_digit(*at_)) {
    do {
      ++at_;
    } while (at_ != end_ && is_name(*at_));
  }
  const std::string_view name(begin, static_cast<std::size_t>(at_ - begin));
  skip_blanks();
  return name;
}

std::int64_t GoalScanner::take_number(const char* what, std::int64_t least, std::int64_t most) {
  const char* begin = at_;
  const bool is_negative = at_ != end_ && *at_ == '-';
  const char* digits = is_negative ? at_ + 1 : at_;
  std::int64_t value = 0;
  const char* last = digits;
  for (; last != end_ && is_digit(*last); ++last) {
    if (value > most) continue;  // already too large; skip the remaining digits
    value = value * 10 + (*last - '0');
  }
  if (is_negative) value = -value;
  if (last == digits || value < least || value > most) {
    const std::string expected =
        std::string(what) + ", a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    if (last == digits) refuse(expected);
    refuse({begin, static_cast<std::size_t>(last - begin)}, expected);
  }
  at_ = last;
  skip_blanks();
  return value;
}

void GoalScanner::refuse(const std::string& expected) const {
  if (at_ == end_) refuse_line(line_, "the end of the file", expected);
  if (*at_ == '\n') refuse_line(line_, "the end of the line", expected);
  const char* last = std::find_if(at_, end_, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  refuse({at_, static_cast<std::size_t>(std::max(last - at_, std::ptrdiff_t{1}))}, expected);
}

void GoalScanner::refuse_line(std::uint32_t line, std::string_view found, const std::string& expected) const {
  refuse_value(file_ + ":" + std::to_string(line), quoted(found, 40), expected);
}

}  // namespace apenet
