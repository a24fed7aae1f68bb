#include "runtime/launch/told.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <sstream>

namespace apenet {

Told::Told(int fd, std::uint32_t rank_count) : fd_(fd), rank_count_(rank_count) {
  if (fd_ >= 0) fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

std::vector<Told::Line> Told::read() {
  constexpr std::size_t longest_line = 64;
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(fd_, buffer.data(), buffer.size());
  if (count <= 0) return {};
  unfinished_.append(buffer.data(), static_cast<std::size_t>(count));
  std::vector<Line> lines;
  std::size_t begin = 0;
  for (std::size_t end = unfinished_.find('\n'); end != std::string::npos;
       end = unfinished_.find('\n', begin)) {
    if (const auto line = parse(unfinished_.substr(begin, end - begin))) lines.push_back(*line);
    begin = end + 1;
  }
  unfinished_.erase(0, begin);
  // No wrapper has written this.
  if (unfinished_.size() > longest_line) unfinished_.erase(longest_line);
  return lines;
}

std::optional<Told::Line> Told::parse(const std::string& text) const {
  std::istringstream fields(text);
  std::string what;
  Line line{};
  if (!(fields >> what >> line.rank >> line.value) || line.rank >= rank_count_ || line.value < 0) return {};
  if (what != "started" && what != "ended") return {};
  line.is_end = what == "ended";
  return line;
}

}  // namespace apenet
