#include "runtime/ipc/recording.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace apenet::ipc {

int open_recording(const char* path) {
  const int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
  if (fd < 0) fail_recording(path);
  return fd;
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
void note_failure(int fd, std::uint32_t rank, int error) {
  RecordingChunk first;
  struct stat status {};
  const bool has_chunk = pread(fd, &first, sizeof(first), 0) == ssize_t{sizeof(first)} &&
                         first.magic == RecordingChunk::expected_magic && fstat(fd, &status) == 0 &&
                         status.st_size >= off_t{first.bytes};
  if (has_chunk) {
    void* mapped = mmap(nullptr, sizeof(first), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) fail_recording("write");
    static_cast<RecordingChunk*>(mapped)->failed_errno = static_cast<std::uint32_t>(error);
    munmap(mapped, sizeof(first));
    return;
  }
  RecordingChunk failure;
  failure.rank = rank;
  failure.failed_errno = static_cast<std::uint32_t>(error);
  if (ftruncate(fd, 0) != 0 || write(fd, &failure, sizeof(failure)) != ssize_t{sizeof(failure)})
    fail_recording("write");
}

void fail_recording(const char* what) {
  std::fprintf(stderr, "apenet: the recording of this run cannot be written: %s: %s\n", what,
               std::strerror(errno));
  std::_Exit(1);
}

}  // namespace apenet::ipc
