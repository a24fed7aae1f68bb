// ProcessMemory: the memory of the simulated program's processes, read and written while they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/scheduler/mapping.hpp"

namespace apenet {

// By process_vm_readv/writev, without the process's help. Where the host forbids that (yama, a container's
// system call filter), the process copies on demand between its memory and its window of the mapping: slower,
// and the same bytes at the same virtual time.
class ProcessMemory {
 public:
  explicit ProcessMemory(Mapping& mapping) : mapping_(mapping) {}

  // False: the address is not the process's, or it has ended. Requires that the process waits.
  bool read(std::uint32_t rank, std::uint64_t address, std::span<std::byte> to);
  bool write(std::uint32_t rank, std::uint64_t address, std::span<const std::byte> from);

 private:
  bool order(std::uint32_t rank, std::uint64_t address, std::size_t bytes, bool into_window);

  Mapping& mapping_;
  bool is_forbidden_ = false;
};

}  // namespace apenet
