#include "runtime/recording/recording.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace apenet {

Recording::Recording(int fd, std::uint32_t rank_count) : fd_(fd), chunks_(rank_count), files_(rank_count) {
  struct stat status {};
  if (fstat(fd, &status) != 0) throw std::system_error(errno, std::generic_category(), "recording");
  size_ = static_cast<std::uint64_t>(status.st_size);
  find_chunks();
}

void Recording::find_chunks() {
  std::uint64_t at = 0;
  while (at < size_) {
    ipc::RecordingChunk header;
    const std::uint64_t left = size_ - at;
    bool is_header = left >= sizeof(header);
    if (is_header) read(&header, sizeof(header), at);
    is_header = is_header && header.magic == ipc::RecordingChunk::expected_magic;
    if (is_header && header.failed_errno != 0) {
      throw std::system_error(static_cast<int>(header.failed_errno), std::generic_category(),
                              "the recording");
    }
    if (!is_header || header.rank >= chunks_.size() || header.bytes < sizeof(header) || header.bytes > left ||
        header.path_bytes + header.entries * sizeof(ipc::RecordingEntry) > header.bytes - sizeof(header)) {
      throw std::runtime_error("the recording of this run is invalid at byte " + std::to_string(at));
    }
    if (header.path_bytes != 0) {
      std::string path(header.path_bytes, '\0');
      read(path.data(), path.size(), at + sizeof(header));
      files_[header.rank].push_back(std::move(path));
    } else {
      chunks_[header.rank].push_back({at + sizeof(header), header.entries});
    }
    at += header.bytes;
  }
}

void Recording::read(void* to, std::size_t bytes, std::uint64_t position) const {
  auto* next = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t count = pread(fd_, next, bytes, static_cast<off_t>(position));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw std::runtime_error("the recording of this run cannot be read at byte " +
                               std::to_string(position));
    }
    next += count;
    position += static_cast<std::uint64_t>(count);
    bytes -= static_cast<std::size_t>(count);
  }
}

std::size_t Recording::entry_count(std::uint32_t rank) const {
  std::size_t count = 0;
  for (const Chunk& chunk : chunks_[rank]) count += chunk.entries;
  return count;
}

}  // namespace apenet
