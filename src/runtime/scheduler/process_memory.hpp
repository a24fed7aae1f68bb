// ProcessMemory: reads and writes the memory of the program's processes while they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// Uses process_vm_readv and process_vm_writev, which need no help from the process. If the host forbids them
// (yama, a container's system call filter), the process copies on demand between its memory and its window of
// the shared memory. That is slower, but moves the same bytes at the same virtual time.
class ProcessMemory {
 public:
  // Longer accesses go in chunks of this size, which fits the second-level cache between read and write.
  static constexpr std::size_t chunk_bytes = std::size_t{256} * 1024;

  ProcessMemory(SharedMemory& shared, ProcessIds& process_ids) : shared_(shared), process_ids_(process_ids) {}

  // Return false if the address is not mapped in the process, or if the process has ended. Require that the
  // process waits.
  bool read(std::uint32_t rank, std::uint64_t address, std::span<std::byte> to);
  bool write(std::uint32_t rank, std::uint64_t address, std::span<const std::byte> from);
  // Likewise for a process that a rank has started, and that waits for the answer of a request. process: 0:
  // the rank's own.
  struct Place {
    std::uint32_t rank = 0;
    std::uint32_t process = 0;
    std::uint64_t address = 0;
  };
  bool read(const Place& place, std::span<std::byte> to);
  bool write(const Place& place, std::span<const std::byte> from);
  // Copies from one process's memory to another's, or within one.
  bool move(std::uint32_t from_rank, std::uint64_t from, std::uint32_t to_rank, std::uint64_t to,
            std::size_t bytes);
  // Whether the simulator can access this process's memory without its help.
  [[nodiscard]] bool needs_no_help(std::uint32_t rank);
  [[nodiscard]] ProcessIds& process_ids() { return process_ids_; }

 private:
  bool order(std::uint32_t rank, std::uint64_t address, std::size_t bytes, bool into_window);
  bool leaves(std::uint32_t rank, std::uint32_t run);

  SharedMemory& shared_;
  ProcessIds& process_ids_;
  bool is_forbidden_ = false;
  std::vector<std::byte> between_;  // read and write; stays, because new memory would be cleared
};

}  // namespace apenet
