// SharedMemory: what the simulator and the processes share. Owns the three memfds, which leave nothing behind
// when closed. Their sizes are sealed, and so is the header against every writer but the simulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ipc/image_records.hpp"
#include "runtime/ipc/protocol.hpp"

namespace apenet {

class SharedMemory {
 public:
  // Creates sparse memory for this number of processes. Throws std::system_error if the host refuses.
  explicit SharedMemory(std::uint32_t process_count);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Gives the memory and the descriptors back to the host. From then on everything reads as zero, except for
  // the header. Call when no process of the run is left.
  void discard();

  [[nodiscard]] ipc::Header& header() { return *reinterpret_cast<ipc::Header*>(base_); }
  [[nodiscard]] ipc::Running& running() {
    return *reinterpret_cast<ipc::Running*>(base_ + ipc::Layout::running_offset());
  }
  [[nodiscard]] ipc::Block& block(std::uint32_t rank) {
    return *reinterpret_cast<ipc::Block*>(base_ + layout_.block_offset(rank));
  }
  [[nodiscard]] const std::byte* slot(std::uint32_t rank, std::uint32_t slot) {
    return base_ + layout_.slot_offset(rank, slot);
  }
  [[nodiscard]] std::byte* event_place(std::uint32_t rank, std::uint32_t position) {
    return base_ + layout_.event_place_offset(rank, position);
  }
  [[nodiscard]] std::byte* window(std::uint32_t rank) { return base_ + layout_.window_offset(rank); }
  [[nodiscard]] const ipc::RankNotes& notes(std::uint32_t rank) {
    return *reinterpret_cast<const ipc::RankNotes*>(base_ + layout_.notes_offset(rank));
  }
  [[nodiscard]] const ipc::RegionTable& regions(std::uint32_t rank) {
    return *reinterpret_cast<const ipc::RegionTable*>(base_ + layout_.regions_offset(rank));
  }
  [[nodiscard]] std::uint32_t process_count() const { return layout_.process_count; }

  // What the processes have recorded of themselves and of those that they started: ipc/image_records.hpp.
  [[nodiscard]] ipc::ImageRecord image(std::uint32_t process_id) const;
  // All records that any process has made.
  [[nodiscard]] std::vector<ipc::ImageRecord> images() const;
  [[nodiscard]] ipc::StartFinding start_finding(std::uint32_t rank) const;
  [[nodiscard]] ipc::MadeNames made_names(std::uint32_t rank) const;

  // The path of the header, /proc/PID/fd/N, by which processes find the mapping. Only the same user may open
  // it.
  [[nodiscard]] std::string path() const;
  // The inode that /proc/PID/maps shows for the parts of the processes.
  [[nodiscard]] std::uint64_t inode() const { return inode_; }

 private:
  ipc::Layout layout_;
  int header_fd_;
  int parts_fd_;
  int images_fd_;
  std::uint64_t inode_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace apenet
