#include "kernel/one_line.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace apenet {
namespace {

struct CodePoint {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: the text does not begin with a character of UTF-8
};

CodePoint first_of(std::string_view text) {
  const auto byte = [text](std::size_t at) -> std::uint32_t { return static_cast<unsigned char>(text[at]); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t at = 1; at < bytes; ++at) {
    if ((byte(at) & 0xc0U) != 0x80) return {};
    code = code << 6U | (byte(at) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < least.at(bytes) || is_surrogate || code > 0x10ffff ? CodePoint{} : CodePoint{code, bytes};
}

bool is_unsafe(std::uint32_t code) {
  struct Range {
    std::uint32_t first, last;
  };
  constexpr std::array<Range, 7> ranges = {{{0x00, 0x1f},
                                            {0x7f, 0x9f},
                                            {0x61c, 0x61c},
                                            {0x200e, 0x200f},
                                            {0x2028, 0x202e},
                                            {0x2066, 0x2069},
                                            {0xfeff, 0xfeff}}};
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](Range range) { return code >= range.first && code <= range.last; });
}

std::string escaped(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  std::array<char, 12> text{};
  std::snprintf(text.data(), text.size(), code < 0x100 ? "\\x%02x" : "\\u%04x", code);
  return text.data();
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint next = first_of(text);
    const std::size_t bytes = std::max<std::size_t>(next.bytes, 1);
    if (next.bytes == 0)
      result += escaped(static_cast<unsigned char>(text.front()));
    else if (is_unsafe(next.code))
      result += escaped(next.code);
    else
      result += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return result;
}

}  // namespace apenet
