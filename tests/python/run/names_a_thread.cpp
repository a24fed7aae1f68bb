// A hostile rank, which calls no library: rank 1 names a thread of the simulator as its process, and posts
// puts into that process's writable memory. Rank 0 takes part honestly.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/protocol.hpp"

namespace ipc = apenet::ipc;

namespace {

std::uint32_t a_further_thread_of(std::uint32_t process) {
  DIR* folder = opendir(("/proc/" + std::to_string(process) + "/task").c_str());
  std::uint32_t thread = 0;
  while (const dirent* entry = readdir(folder)) {
    const auto id = static_cast<std::uint32_t>(std::atoi(entry->d_name));
    if (id != 0 && id != process) thread = id;
  }
  closedir(folder);
  return thread;
}

std::uint64_t heap_of(std::uint32_t process) {
  std::FILE* maps = std::fopen(("/proc/" + std::to_string(process) + "/maps").c_str(), "r");
  char line[4096];
  unsigned long long begin = 0;
  while (std::fgets(line, sizeof line, maps) != nullptr && std::strstr(line, "[heap]") == nullptr) continue;
  std::sscanf(line, "%llx-", &begin);
  std::fclose(maps);
  return begin;
}

}  // namespace

int main() {
  const int rank = std::atoi(std::getenv("APENET_RANK"));
  const int header_fd = open(std::getenv("APENET_MAPPING"), O_RDONLY);
  const auto* header = static_cast<const ipc::Header*>(
      mmap(nullptr, ipc::Layout::running_offset(), PROT_READ, MAP_SHARED, header_fd, 0));
  const std::uint32_t simulator = header->simulator_id;
  const std::string parts = "/proc/" + std::to_string(simulator) + "/fd/" + std::to_string(header->parts_fd);
  const ipc::Layout layout{header->process_count};
  auto* base = static_cast<std::byte*>(mmap(nullptr, layout.total_bytes(), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_NORESERVE, open(parts.c_str(), O_RDWR), 0));
  auto& block = *reinterpret_cast<ipc::Block*>(base + layout.block_offset(static_cast<std::uint32_t>(rank)));
  auto& running = *reinterpret_cast<ipc::Running*>(base + ipc::Layout::running_offset());
  block.identity.process_id =
      rank == 1 ? a_further_thread_of(simulator) : static_cast<std::uint32_t>(getpid());
  for (std::uint64_t number = 0; rank == 1 && number < 200; ++number) {
    ipc::Request request;
    request.message = number;
    request.target = 1;
    request.verb = ipc::RequestVerb::put;
    request.flags = ipc::from_cpu;
    request.bytes = request.inline_length = 128;
    std::memset(request.inline_data, 'A', 128);
    request.remote_address = heap_of(simulator) + number * 128;
    std::memcpy(static_cast<void*>(&block.rings.requests[number]), &request, sizeof request);
    ++block.rings.request_head;
  }
  block.grant.wait = ipc::Wait::for_event;
  block.identity.joined = 1;
  block.grant.run = ipc::waits;
  running.count--;
  ipc::futex_wake(running.count);
  pause();
}
