// The path by which other processes of this user open a descriptor of this process.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace apenet::ipc {

// The number as text of at least so many characters, with this character in front.
inline std::string padded(int number, char with) {
  constexpr std::size_t digits = 7;  // digits of the largest process id of Linux
  std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), with) + text;
}

// Has the same length for any process id and descriptor, because ranks have such paths in their environment:
// repeated slashes count as one, and /proc knows no numbers that begin with zeros.
inline std::string descriptor_path(int fd) {
  return "/proc/" + padded(getpid(), '/') + "/fd/" + padded(fd, '/');
}

}  // namespace apenet::ipc
