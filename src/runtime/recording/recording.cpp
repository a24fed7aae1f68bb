#include "runtime/recording/recording.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace apenet {

Recording::Recording(int fd, std::uint32_t rank_count) : chunks_(rank_count), files_(rank_count) {
  struct stat status {};
  if (fstat(fd, &status) != 0) throw std::system_error(errno, std::generic_category(), "recording");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* start = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
  if (start == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "recording");
  start_ = start;
  try {
    find_chunks();
  } catch (...) {
    munmap(start_, size_);
    throw;
  }
}

Recording::~Recording() {
  if (start_ != nullptr) munmap(start_, size_);
}

void Recording::find_chunks() {
  const auto* bytes = static_cast<const std::byte*>(start_);
  std::size_t at = 0;
  while (at < size_) {
    const auto* header = reinterpret_cast<const ipc::RecordingChunk*>(bytes + at);
    const std::size_t left = size_ - at;
    const bool is_header = left >= sizeof(*header) && header->magic == ipc::RecordingChunk::expected_magic;
    if (is_header && header->failed_errno != 0) {
      throw std::system_error(static_cast<int>(header->failed_errno), std::generic_category(),
                              "the recording");
    }
    if (!is_header || header->rank >= chunks_.size() || header->bytes < sizeof(*header) ||
        header->bytes > left ||
        header->path_bytes + header->entries * sizeof(ipc::RecordingEntry) >
            header->bytes - sizeof(*header)) {
      throw std::runtime_error("the recording of this run is invalid at byte " + std::to_string(at));
    }
    const std::byte* content = bytes + at + sizeof(*header);
    if (header->path_bytes != 0) {
      files_[header->rank].emplace_back(reinterpret_cast<const char*>(content), header->path_bytes);
    } else {
      chunks_[header->rank].emplace_back(reinterpret_cast<const ipc::RecordingEntry*>(content),
                                         header->entries);
    }
    at += header->bytes;
  }
}

std::size_t Recording::entry_count(std::uint32_t rank) const {
  std::size_t count = 0;
  for (const std::span<const ipc::RecordingEntry> chunk : chunks_[rank]) count += chunk.size();
  return count;
}

}  // namespace apenet
