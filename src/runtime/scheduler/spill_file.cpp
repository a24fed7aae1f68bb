#include "runtime/scheduler/spill_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace apenet {

SpillFile::~SpillFile() {
  if (fd_ >= 0) close(fd_);
}

std::string SpillFile::folder() {
  const char* const given = std::getenv("TMPDIR");
  return given != nullptr && *given != '\0' ? given : "/var/tmp";
}

bool SpillFile::open() {
  if (fd_ >= 0) return true;
  fd_ = ::open(folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ < 0) {  // a file system without unnamed files
    std::string name = folder() + "/apenet-XXXXXX";
    fd_ = mkostemp(name.data(), O_CLOEXEC);
    if (fd_ >= 0) unlink(name.c_str());
  }
  return fd_ >= 0;
}

std::optional<std::uint64_t> SpillFile::keep(std::span<const std::byte> bytes) {
  if (!open()) return std::nullopt;
  const std::uint64_t place = end_;
  for (std::size_t done = 0; done < bytes.size();) {
    const auto left = bytes.subspan(done);
    const ssize_t count = pwrite(fd_, left.data(), left.size(), static_cast<off_t>(place + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    done += static_cast<std::size_t>(count);
  }
  end_ += bytes.size();
  kept_ += bytes.size();
  return place;
}

bool SpillFile::read(std::uint64_t place, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t count = pread(fd_, to.data(), to.size(), static_cast<off_t>(place));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(count));
    place += static_cast<std::uint64_t>(count);
  }
  return true;
}

void SpillFile::release(std::uint64_t bytes) {
  kept_ -= bytes;
  if (kept_ > 0 || end_ == 0) return;
  end_ = 0;
  // The room goes back to the file system; if that fails, it does so when the run ends.
  if (ftruncate(fd_, 0) != 0) return;
}

}  // namespace apenet
