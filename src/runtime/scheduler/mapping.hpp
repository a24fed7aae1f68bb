// Mapping: the simulator's side of the shared memory. Owns the memfd; nothing is left behind when it goes.
// Nobody can change its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/ipc/protocol.hpp"

namespace apenet {

class Mapping {
 public:
  // A sparse memfd for so many processes; throws std::system_error when the host refuses.
  explicit Mapping(std::uint32_t process_count);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] ipc::Header& header() { return *reinterpret_cast<ipc::Header*>(base_); }
  [[nodiscard]] ipc::Running& running() {
    return *reinterpret_cast<ipc::Running*>(base_ + ipc::Layout::running_offset());
  }
  [[nodiscard]] ipc::Block& block(std::uint32_t rank) {
    return *reinterpret_cast<ipc::Block*>(base_ + layout_.block_offset(rank));
  }
  [[nodiscard]] std::byte* window(std::uint32_t rank) { return base_ + layout_.window_offset(rank); }
  [[nodiscard]] const ipc::RankNotes& notes(std::uint32_t rank) {
    return *reinterpret_cast<const ipc::RankNotes*>(base_ + layout_.notes_offset(rank));
  }
  [[nodiscard]] const ipc::RegionTable& regions(std::uint32_t rank) {
    return *reinterpret_cast<const ipc::RegionTable*>(base_ + layout_.regions_offset(rank));
  }
  // Where a process of the same user finds it: /proc/PID/fd/N. Nobody else may open that.
  [[nodiscard]] std::string path() const;
  // By which it is known in /proc/PID/maps.
  [[nodiscard]] std::uint64_t inode() const { return inode_; }

 private:
  ipc::Layout layout_;
  int fd_ = -1;
  std::uint64_t inode_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace apenet
