// A hostile rank, which calls no library: rank 1 names no process, takes part in virtual time, and sleeps
// once it has the grant. Rank 0 names its process, and waits as often as it is woken.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/protocol.hpp"

namespace ipc = apenet::ipc;

int main() {
  const int rank = std::atoi(std::getenv("APENET_RANK"));
  const int header_fd = open(std::getenv("APENET_MAPPING"), O_RDONLY);
  const auto* header = static_cast<const ipc::Header*>(
      mmap(nullptr, ipc::Layout::running_offset(), PROT_READ, MAP_SHARED, header_fd, 0));
  const std::string parts =
      "/proc/" + std::to_string(header->simulator_id) + "/fd/" + std::to_string(header->parts_fd);
  const ipc::Layout layout{header->process_count};
  auto* base = static_cast<std::byte*>(mmap(nullptr, layout.total_bytes(), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_NORESERVE, open(parts.c_str(), O_RDWR), 0));
  auto& block = *reinterpret_cast<ipc::Block*>(base + layout.block_offset(static_cast<std::uint32_t>(rank)));
  auto& running = *reinterpret_cast<ipc::Running*>(base + ipc::Layout::running_offset());
  if (rank == 0) block.identity.process_id = static_cast<std::uint32_t>(getpid());
  block.identity.joined = 1;
  for (;;) {
    block.grant.wait = ipc::Wait::for_event;
    block.grant.run = ipc::waits;
    if (--running.count == 0) ipc::futex_wake(running.count);
    while (block.grant.run == ipc::waits) ipc::futex_wait(block.grant.run, ipc::waits, nullptr);
    if (rank == 1) pause();
  }
}
