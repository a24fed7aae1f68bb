// Records of the images of processes: which program each process of a run executes, and whether it has the
// shim. A program can start another one by a system call of its own, which nothing intercepts; such a program
// is recognised because it leaves no record, or because its process ends without the mark that the shim makes
// at every exit.
//
// The records lie in a sparse memfd of the simulator: one for each process id, then one for each rank, then
// the names of shared memory that each rank has made (MadeNames). All
// functions make only system calls: the caller may be the child of a vfork, or a signal handler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/ipc/pages.hpp"
#include "runtime/ipc/simulation_paths.hpp"

namespace apenet::ipc {

enum class ImageState : std::uint32_t {
  unknown,
  followed,    // has the shim, and runs
  ended,       // the shim has seen it exit
  unfollowed,  // the shim has started it, but cannot be loaded into it
  outside,     // belongs to no run on purpose
  starts_raw,  // as ended, but it has waited for children that the C library has not started
  starting,    // the process becomes it; if it ends so, the loader has refused it
};

struct ImageRecord {
  static constexpr std::size_t name_bytes = 16;  // as in the kernel

  ImageState state = ImageState::unknown;
  std::uint32_t process_id = 0;  // two processes may share a record; the last writer owns it
  std::uint32_t rank = 0;
  // Page faults of the children that the process had waited for when this image began: a program leaves them
  // to the next one.
  std::uint32_t child_faults = 0;
  char name[name_bytes] = {};  // that the kernel gives the process
  // When the timer of alarm() and setitimer(ITIMER_REAL) ends next in the host, on CLOCK_MONOTONIC; 0: it
  // does not run, INT64_MAX: it repeats. In a rank that has begun, OutsideNote has it.
  std::int64_t alarm_ns = 0;
  char path[216] = {};  // the program's path; without its beginning if it is too long
};

enum class StartFindingKind : std::uint32_t {
  none,
  own_mpi,     // the process brings an MPI of its own (shim/own_mpi.hpp)
  unfollowed,  // the child was a program into which no shim can be loaded
  raw,         // the child has become a program without the shim, by a system call
};

// What a process of the rank has found out about itself, or when it waited for a child. The worst is kept.
struct StartFinding {
  StartFindingKind kind = StartFindingKind::none;
  char path[252] = {};  // path of the program of which the kind tells
};

// Semaphores and segments that the processes of a rank have made and not removed, in the host's folder of
// shared memory. Only names of which nobody outside the run can know: Python's multiprocessing draws them,
// and the process of Python that would remove them ends with the run.
struct MadeNames {
  static constexpr std::size_t name_bytes = 32;
  static constexpr std::size_t most_names = 128;
  char names[most_names][name_bytes] = {};  // an empty one is free
};
static_assert(sizeof(MadeNames) == 4096);

// Whether it is such a name, as it stands in the folder.
[[nodiscard]] constexpr bool is_drawn_name(std::string_view name) {
  const bool begins = name.starts_with("sem.mp-") || name.starts_with("psm_");
  return begins && name.size() < MadeNames::name_bytes && name.find('/') == std::string_view::npos;
}

struct ImageLayout {
  static constexpr std::uint32_t record_count = 1U << 16;
  static constexpr std::size_t record_offset(std::uint32_t process_id) {
    return std::size_t{process_id % record_count} * sizeof(ImageRecord);
  }
  static constexpr std::size_t finding_offset(std::uint32_t rank) {
    return (record_count + std::size_t{rank}) * sizeof(ImageRecord);
  }
  static constexpr std::size_t names_offset(std::uint32_t process_count, std::uint32_t rank) {
    return round_to_pages(finding_offset(process_count)) + std::size_t{rank} * sizeof(MadeNames);
  }
  static constexpr std::size_t total_bytes(std::uint32_t process_count) {
    return names_offset(process_count, process_count);
  }
};
// A power of two, so that each lies in one page.
static_assert(sizeof(ImageRecord) == 256 && sizeof(StartFinding) == 256);

// The way of a process to the records.
class ImageRecords {
 public:
  // Finds the simulation by the path of its header.
  void find(const char* mapping);
  [[nodiscard]] bool is_found() const { return paths_.process_count != 0; }
  [[nodiscard]] std::uint32_t process_count() const { return paths_.process_count; }

  void write(const ImageRecord& record) const;
  // Returns a record of state unknown if nothing is known of the process.
  [[nodiscard]] ImageRecord read(std::uint32_t process_id) const;
  void note(std::uint32_t rank, const StartFinding& finding) const;
  // For is_drawn_name(). Those beyond most_names are not noted.
  void note_made(std::uint32_t rank, std::string_view name) const;
  void forget_made(std::uint32_t rank, std::string_view name) const;

 private:
  template <typename Visit>
  void visit_bytes(std::size_t offset, Visit visit) const;

  SimulationPaths paths_{};
};

// The id of this process as the host's /proc shows it, also in a process namespace of its own.
[[nodiscard]] std::uint32_t own_process_id();

// Page faults of the children that this process has waited for: not 0 if there were any.
[[nodiscard]] std::uint32_t child_faults();

// Copies a text, without its beginning if it is too long.
template <std::size_t size>
void copy_end(char (&to)[size], std::string_view from) {
  if (from.size() >= size) from.remove_prefix(from.size() - (size - 1));
  *std::copy(from.begin(), from.end(), to) = '\0';
}

}  // namespace apenet::ipc
