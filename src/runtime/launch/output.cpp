#include "runtime/launch/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "runtime/ipc/protocol.hpp"

namespace apenet {
namespace {

// How libraries of older versions refuse a simulation of another version, and what of it is the reason.
constexpr std::string_view older_refusal = "apenet: APENET_MAPPING = ";
constexpr std::string_view of_older_refusal = older_refusal.substr(sizeof "apenet: " - 1);

// Whether both streams go to the same file. False for a terminal: there, output is shown early rather than in
// strict order of the two streams.
bool are_one_file(std::array<int, 2> sinks) {
  struct stat output {};
  struct stat error {};
  return fstat(sinks[0], &output) == 0 && fstat(sinks[1], &error) == 0 && output.st_dev == error.st_dev &&
         output.st_ino == error.st_ino && isatty(sinks[0]) == 0;
}

}  // namespace

Output::Output(std::vector<std::array<int, 2>> pipes, std::array<int, 2> sinks, bool is_tagged)
    : ranks_(pipes.size()), sinks_(sinks), in_one_file_(are_one_file(sinks)), is_tagged_(is_tagged) {
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

void Output::read(std::uint32_t rank, int stream, std::int64_t time_ps) {
  int& fd = ranks_[rank].pipes[static_cast<std::size_t>(stream)];
  if (fd < 0) return;
  std::string& unfinished = ranks_[rank].unfinished[static_cast<std::size_t>(stream)];
  std::array<char, 16384> buffer;
  for (std::size_t done = 0; done < most_read_bytes;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      close(fd);
      fd = -1;
      return;
    }
    const std::string_view text(buffer.data(), static_cast<std::size_t>(count));
    done += text.size();
    const std::size_t before = unfinished.size();
    unfinished += text;
    // Only the first line can be too long. It is cut at a fixed place, not where the pipe happened to end.
    const std::size_t first_end = std::min(unfinished.find('\n', before), unfinished.size());
    if (first_end >= most_unfinished_bytes) take(rank, stream, time_ps, most_unfinished_bytes);
    // What was there before has no end of line: it is not searched again for each part of a long line.
    if (text.find('\n') == std::string_view::npos) continue;
    if (stream == 1) {
      take_refusals(ranks_[rank], unfinished, ipc::refusal_mark, {});
      take_refusals(ranks_[rank], unfinished, older_refusal, of_older_refusal);
    }
    const std::size_t last_end = unfinished.rfind('\n');
    if (last_end != std::string::npos) take(rank, stream, time_ps, last_end + 1);
  }
}

void Output::take_refusals(Rank& rank, std::string& lines, std::string_view mark, std::string_view kept) {
  for (std::size_t begin = lines.find(mark); begin != std::string::npos; begin = lines.find(mark, begin)) {
    const std::size_t end = lines.find('\n', begin);
    if (end == std::string::npos) return;
    if (begin > 0 && lines[begin - 1] != '\n') {
      begin += mark.size();
      continue;
    }
    rank.refusal = kept;
    rank.refusal += lines.substr(begin + mark.size(), end - begin - mark.size());
    lines.erase(begin, end + 1 - begin);
  }
}

// Moves the first `size` bytes of the unfinished text to the finished lines.
void Output::take(std::uint32_t rank, int stream, std::int64_t time_ps, std::size_t size) {
  if (size == 0) return;
  std::string& unfinished = ranks_[rank].unfinished[static_cast<std::size_t>(stream)];
  HeldText& held = lines_[{time_ps, rank}][static_cast<std::size_t>(stream)];
  if (!is_tagged_) {
    hold(held, unfinished.substr(0, size));
  } else {
    std::string lines;
    for (std::size_t begin = 0; begin < size;) {
      const std::size_t end = std::min(unfinished.find('\n', begin), size - 1) + 1;
      lines += "[" + std::to_string(rank) + "] ";
      lines.append(unfinished, begin, end - begin);
      begin = end;
    }
    // Other ranks may print before the line goes on, and what follows gets a tag of its own.
    if (size == most_unfinished_bytes && lines.back() != '\n') lines += '\n';
    hold(held, std::move(lines));
  }
  unfinished.erase(0, size);
}

void Output::hold(HeldText& held, std::string text) {
  std::vector<HeldText::Piece>& pieces = held.pieces;
  if (held_bytes_ + text.size() > most_held_bytes) {
    const std::optional<std::uint64_t> place = spilled_.keep(std::as_bytes(std::span(text)));
    if (place) {
      const bool follows =
          !pieces.empty() && pieces.back().bytes > 0 && pieces.back().place + pieces.back().bytes == *place;
      if (follows) {
        pieces.back().bytes += text.size();
      } else {
        pieces.push_back({.text = {}, .place = *place, .bytes = text.size()});
      }
      return;
    }
  }
  held_bytes_ += text.size();
  if (pieces.empty() || pieces.back().bytes > 0) {
    pieces.push_back({.text = std::move(text)});
  } else {
    pieces.back().text += text;
  }
}

void Output::pass(OutputKey earliest) {
  while (!lines_.empty() && lines_.begin()->first <= earliest) {
    const auto first = lines_.begin();
    write(0, first->second[0]);
    // The rank may still write standard output at this time, which belongs before its standard error.
    if (in_one_file_ && first->first == earliest && !ranks_[earliest.rank].ended) return;
    write(1, first->second[1]);
    lines_.erase(first);
  }
}

void Output::end(std::uint32_t rank, std::int64_t time_ps) {
  for (int stream = 0; stream < 2; ++stream) {
    read(rank, stream, time_ps);
    take(rank, stream, time_ps, ranks_[rank].unfinished[static_cast<std::size_t>(stream)].size());
  }
  ranks_[rank].ended = true;
}

void Output::pass_all() {
  for (auto& [key, streams] : lines_) {
    for (int stream = 0; stream < 2; ++stream) write(stream, streams[static_cast<std::size_t>(stream)]);
  }
  lines_.clear();
}

// Clears the text, even if it could not be written.
void Output::write(int stream, HeldText& held) {
  std::string part;
  for (HeldText::Piece& piece : held.pieces) {
    write(stream, piece.text);
    held_bytes_ -= piece.text.size();
    for (std::uint64_t done = 0; done < piece.bytes; done += part.size()) {
      part.resize(std::min<std::uint64_t>(most_unfinished_bytes, piece.bytes - done));
      if (!spilled_.read(piece.place + done, std::as_writable_bytes(std::span(part)))) sink_error_ = EIO;
      write(stream, part);
    }
    spilled_.release(piece.bytes);
  }
  held.pieces.clear();
}

void Output::write(int stream, std::string_view text) {
  const int fd = sinks_[static_cast<std::size_t>(stream)];
  std::size_t done = 0;
  while (done < text.size() && sink_error_ == 0) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      sink_error_ = errno;
    }
  }
}

}  // namespace apenet
