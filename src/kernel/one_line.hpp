// Text from outside, such as the name of a file, a process or a communicator, for a message.
#pragma once

#include <string>
#include <string_view>

namespace apenet {

// The text in one line and in UTF-8: control characters, those that break a line or change its direction, and
// bytes that are no UTF-8 are escaped as \n, \x1b or \u202e. apenet/base/escape.py does the same.
[[nodiscard]] std::string one_line(std::string_view text);

}  // namespace apenet
