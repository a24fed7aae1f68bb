#include "runtime/ipc/recording.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace apenet::ipc {

int open_recording(const char* path) {
  return open(path, O_RDWR | O_APPEND | O_CLOEXEC);
}

RecordingChunk* append_chunk(int fd, std::uint32_t rank, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t whole = (sizeof(RecordingChunk) + bytes + page - 1) / page * page;
  std::vector<std::byte> empty(whole);
  RecordingChunk header;
  header.rank = rank;
  header.bytes = static_cast<std::uint32_t>(whole);
  std::memcpy(empty.data(), &header, sizeof(header));
  errno = ENOSPC;  // that of a write which comes to a limit half-way
  // In one call, or chunks of several ranks would mix. The disk has room for all of it then.
  if (write(fd, empty.data(), whole) != static_cast<ssize_t>(whole)) return nullptr;
  const off_t end = lseek(fd, 0, SEEK_CUR);
  void* mapped =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, end - static_cast<off_t>(whole));
  return mapped == MAP_FAILED ? nullptr : static_cast<RecordingChunk*>(mapped);
}

// Ranks have their chunks mapped, so the file must not shrink once it has one. Without one it is emptied, so
// that a header has room on a full disk.
bool note_failure(int fd, std::uint32_t rank, int error) {
  RecordingChunk first;
  struct stat status {};
  const bool has_chunk = pread(fd, &first, sizeof(first), 0) == ssize_t{sizeof(first)} &&
                         first.magic == RecordingChunk::expected_magic && fstat(fd, &status) == 0 &&
                         status.st_size >= off_t{first.bytes};
  if (has_chunk) {
    void* mapped = mmap(nullptr, sizeof(first), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) return false;
    static_cast<RecordingChunk*>(mapped)->failed_errno = static_cast<std::uint32_t>(error);
    munmap(mapped, sizeof(first));
    return true;
  }
  RecordingChunk failure;
  failure.rank = rank;
  failure.failed_errno = static_cast<std::uint32_t>(error);
  if (ftruncate(fd, 0) != 0) return false;
  errno = ENOSPC;
  return write(fd, &failure, sizeof(failure)) == ssize_t{sizeof(failure)};
}

std::string recording_failure() {
  return std::string("the recording of this run cannot be written: ") + std::strerror(errno);
}

}  // namespace apenet::ipc
