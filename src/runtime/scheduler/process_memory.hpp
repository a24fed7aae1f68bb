// ProcessMemory: the memory of the simulated program's processes, read and written while they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/scheduler/mapping.hpp"
#include "runtime/scheduler/process_ids.hpp"

namespace apenet {

// By process_vm_readv/writev, without the process's help. Where the host forbids that (yama, a container's
// system call filter), the process copies on demand between its memory and its window of the mapping: slower,
// and the same bytes at the same virtual time.
class ProcessMemory {
 public:
  ProcessMemory(Mapping& mapping, ProcessIds& process_ids) : mapping_(mapping), process_ids_(process_ids) {}

  // False: the address is not the process's, or it has ended. Requires that the process waits.
  bool read(std::uint32_t rank, std::uint64_t address, std::span<std::byte> to);
  bool write(std::uint32_t rank, std::uint64_t address, std::span<const std::byte> from);
  // Whether the process is not needed for it.
  [[nodiscard]] bool needs_no_help(std::uint32_t rank);

 private:
  bool order(std::uint32_t rank, std::uint64_t address, std::size_t bytes, bool into_window);

  Mapping& mapping_;
  ProcessIds& process_ids_;
  bool is_forbidden_ = false;
};

}  // namespace apenet
