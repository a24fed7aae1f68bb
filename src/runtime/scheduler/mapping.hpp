// Mapping: the simulator's side of the shared memory. Owns the memfd, which leaves nothing behind when
// closed. The size is sealed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/ipc/protocol.hpp"

namespace apenet {

class Mapping {
 public:
  // Creates a sparse memfd for this number of processes. Throws std::system_error if the host refuses.
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
  // The path, /proc/PID/fd/N, through which processes open the mapping. Only the same user may open it.
  [[nodiscard]] std::string path() const;
  // The inode that /proc/PID/maps shows for the mapping.
  [[nodiscard]] std::uint64_t inode() const { return inode_; }

 private:
  ipc::Layout layout_;
  int fd_ = -1;
  std::uint64_t inode_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace apenet
