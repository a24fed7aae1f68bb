#include "kernel/one_line.hpp"

#include <gtest/gtest.h>

#include <string>

#include "kernel/refuse.hpp"

namespace apenet {
namespace {

TEST(OneLine, EscapesWhatEndsALineOrMovesTheCursor) {
  EXPECT_EQ(one_line("a\x1b[31m\n\r\t\x7f"), "a\\x1b[31m\\n\\r\\t\\x7f");
  EXPECT_EQ(one_line(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(one_line("\xc2\x9b\xe2\x80\xae\xe2\x80\xa8\xef\xbb\xbf"), "\\x9b\\u202e\\u2028\\ufeff");
}

TEST(OneLine, KeepsOtherTextInUtf8) {
  const std::string text = "Z\xc3\xbcrich \xe6\xbc\xa2\xf0\x9f\x91\x8d 'a\\b'";
  EXPECT_EQ(one_line(text), text);
}

TEST(OneLine, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(one_line("\xff"
                     "a\xc3"),
            "\\xffa\\xc3");
  EXPECT_EQ(one_line("\xc0\x8a"), "\\xc0\\x8a");           // an overlong line end
  EXPECT_EQ(one_line("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(one_line("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(one_line("\xe2\x80"), "\\xe2\\x80");
}

TEST(OneLine, QuotedTextIsEscapedToo) {
  EXPECT_EQ(quoted("a\nb", 80), "\"a\\nb\"");
  EXPECT_EQ(quoted("abcd", 2), "\"ab...\"");
}

}  // namespace
}  // namespace apenet
