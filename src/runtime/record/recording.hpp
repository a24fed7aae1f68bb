// Recording: what the ranks of a run wrote down (ipc/record.hpp), by rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ipc/record.hpp"

namespace apenet {

// The file of a recording, in memory as far as it is looked at, and where each rank's chunks lie in it.
class Recording {
 public:
  // Throws std::runtime_error when the file is not a sound recording of so many ranks.
  Recording(int fd, std::uint32_t rank_count);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  [[nodiscard]] std::uint32_t rank_count() const { return static_cast<std::uint32_t>(chunks_.size()); }
  [[nodiscard]] std::size_t entry_count(std::uint32_t rank) const;
  // Calls visit(entry) for what a rank wrote, in the order in which it did.
  template <typename Visit>
  void for_each(std::uint32_t rank, Visit visit) const {
    for (const std::span<const ipc::RecordEntry> chunk : chunks_[rank]) {
      for (const ipc::RecordEntry& entry : chunk) visit(entry);
    }
  }

 private:
  void find_chunks();

  void* start_ = nullptr;
  std::size_t size_ = 0;
  std::vector<std::vector<std::span<const ipc::RecordEntry>>> chunks_;
};

}  // namespace apenet
