// Recording: the records of the ranks of a run (ipc/recording.hpp), by rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ipc/recording.hpp"

namespace apenet {

// The file of a recording, and the location of each rank's chunks in it. It has only one chunk in memory at a
// time, because a file of millions of messages has gigabytes.
class Recording {
 public:
  // Throws std::runtime_error if the file is not a valid recording of this many ranks. `fd` stays the
  // caller's.
  Recording(int fd, std::uint32_t rank_count);

  [[nodiscard]] std::uint32_t rank_count() const { return static_cast<std::uint32_t>(chunks_.size()); }
  [[nodiscard]] std::size_t entry_count(std::uint32_t rank) const;
  // The files of code that a rank names.
  [[nodiscard]] const std::vector<std::string>& files(std::uint32_t rank) const { return files_[rank]; }
  // Calls visit(entry) for each entry of a rank, in the order in which it was written. Throws
  // std::runtime_error if the file cannot be read.
  template <typename Visit>
  void for_each(std::uint32_t rank, Visit visit) const {
    std::vector<ipc::RecordingEntry> entries;
    for (const Chunk& chunk : chunks_[rank]) {
      entries.resize(chunk.entries);
      read(entries.data(), chunk.entries * sizeof(ipc::RecordingEntry), chunk.begin);
      for (const ipc::RecordingEntry& entry : entries) visit(entry);
    }
  }

 private:
  struct Chunk {
    std::uint64_t begin = 0;  // position of its first entry in the file
    std::uint32_t entries = 0;
  };

  void find_chunks();
  void read(void* to, std::size_t bytes, std::uint64_t position) const;

  int fd_;
  std::uint64_t size_ = 0;
  std::vector<std::vector<Chunk>> chunks_;
  std::vector<std::vector<std::string>> files_;
};

}  // namespace apenet
