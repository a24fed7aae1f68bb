#include "runtime/launch/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace apenet {

Output::Output(std::vector<std::array<int, 2>> pipes, std::array<int, 2> sinks)
    : ranks_(pipes.size()), sinks_(sinks) {
  for (std::size_t rank = 0; rank < pipes.size(); ++rank) {
    ranks_[rank].pipes = pipes[rank];
    for (const int fd : pipes[rank]) {
      if (fd < 0) continue;
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
  }
}

Output::~Output() {
  for (const Rank& rank : ranks_) {
    for (const int fd : rank.pipes) {
      if (fd >= 0) close(fd);
    }
  }
}

bool Output::read(std::uint32_t rank, int stream) {
  int& fd = ranks_[rank].pipes[static_cast<std::size_t>(stream)];
  if (fd < 0) return false;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count > 0) {
      ranks_[rank].held[static_cast<std::size_t>(stream)].append(buffer.data(),
                                                                 static_cast<std::size_t>(count));
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    close(fd);
    fd = -1;
    return false;
  }
}

void Output::pass_lines(std::uint32_t rank) {
  for (int stream = 0; stream < 2; ++stream) {
    std::string& held = ranks_[rank].held[static_cast<std::size_t>(stream)];
    const std::size_t end = held.rfind('\n');
    if (end == std::string::npos) continue;
    write(stream, held.data(), end + 1);
    held.erase(0, end + 1);
  }
}

void Output::pass_in_turn() {
  while (turn_ < ranks_.size() && ranks_[turn_].ended) write_held(ranks_[turn_++]);
  if (turn_ < ranks_.size()) pass_lines(turn_);
}

void Output::end_all() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (int stream = 0; stream < 2; ++stream) read(rank, stream);
    end(rank);
  }
  pass_in_turn();
}

void Output::write_held(Rank& rank) {
  for (int stream = 0; stream < 2; ++stream) {
    std::string& held = rank.held[static_cast<std::size_t>(stream)];
    write(stream, held.data(), held.size());
    held.clear();
  }
}

void Output::write(int stream, const char* data, std::size_t size) {
  const int fd = sinks_[static_cast<std::size_t>(stream)];
  while (size > 0 && !sink_closed_) {
    const ssize_t count = ::write(fd, data, size);
    if (count >= 0) {
      data += count;
      size -= static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      sink_closed_ = true;
    }
  }
}

}  // namespace apenet
