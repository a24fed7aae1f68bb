// SpillFile: bytes that are too many for the simulator's memory, in a file without a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace apenet {

// Lies in TMPDIR, else in /var/tmp, and ends with the process. It is opened when the first bytes come, and
// becomes empty when all bytes have been released.
class SpillFile {
 public:
  SpillFile() = default;
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Appends the bytes and returns their place; nothing if the host has no room for them.
  [[nodiscard]] std::optional<std::uint64_t> keep(std::span<const std::byte> bytes);
  // Reads bytes back that have been kept. Returns false if the host fails.
  [[nodiscard]] bool read(std::uint64_t place, std::span<std::byte> to) const;
  // Says that this many of the kept bytes are not needed any more.
  void release(std::uint64_t bytes);

  // The folder, for messages.
  [[nodiscard]] static std::string folder();

 private:
  bool open();

  int fd_ = -1;
  std::uint64_t end_ = 0;
  std::uint64_t kept_ = 0;  // bytes that are still needed
};

}  // namespace apenet
