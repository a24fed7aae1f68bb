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
  std::array<char, 4096> buffer;
  for (ssize_t count = ::read(fd_, buffer.data(), buffer.size()); count > 0;
       count = ::read(fd_, buffer.data(), buffer.size())) {
    unfinished_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  std::vector<Line> lines;
  for (std::size_t end = unfinished_.find('\n'); end != std::string::npos; end = unfinished_.find('\n')) {
    if (const auto line = parse(unfinished_.substr(0, end))) lines.push_back(*line);
    unfinished_.erase(0, end + 1);
  }
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
