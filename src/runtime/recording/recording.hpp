// Recording: the records of the ranks of a run (ipc/recording.hpp), by rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/ipc/recording.hpp"

namespace apenet {

// The file of a recording, mapped into memory, and the location of each rank's chunks.
class Recording {
 public:
  // Throws std::runtime_error if the file is not a valid recording of this many ranks.
  Recording(int fd, std::uint32_t rank_count);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  [[nodiscard]] std::uint32_t rank_count() const { return static_cast<std::uint32_t>(chunks_.size()); }
  [[nodiscard]] std::size_t entry_count(std::uint32_t rank) const;
  // The files of code that a rank names.
  [[nodiscard]] const std::vector<std::string>& files(std::uint32_t rank) const { return files_[rank]; }
  // Calls visit(entry) for each entry of a rank, in the order in which it was written.
  template <typename Visit>
  void for_each(std::uint32_t rank, Visit visit) const {
    for (const std::span<const ipc::RecordingEntry> chunk : chunks_[rank]) {
      for (const ipc::RecordingEntry& entry : chunk) visit(entry);
    }
  }

 private:
  void find_chunks();

  void* start_ = nullptr;
  std::size_t size_ = 0;
  std::vector<std::vector<std::span<const ipc::RecordingEntry>>> chunks_;
  std::vector<std::vector<std::string>> files_;
};

}  // namespace apenet
