// A hostile rank of an MPI program: rank 1 posts a put past its MPI library, to an address of rank 0 that no
// message has offered.
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "message/wire.hpp"
#include "runtime/ipc/protocol.hpp"

namespace ipc = apenet::ipc;

namespace {

char memory[64];  // belongs to rank 0
char source[64];

void put_to(std::uint64_t address, std::uint32_t receive) {
  const int header_fd = open(std::getenv("APENET_MAPPING"), O_RDONLY);
  const auto* header = static_cast<const ipc::Header*>(
      mmap(nullptr, ipc::Layout::running_offset(), PROT_READ, MAP_SHARED, header_fd, 0));
  const std::string parts =
      "/proc/" + std::to_string(header->simulator_id) + "/fd/" + std::to_string(header->parts_fd);
  const ipc::Layout layout{header->process_count};
  auto* base = static_cast<std::byte*>(mmap(nullptr, layout.total_bytes(), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_NORESERVE, open(parts.c_str(), O_RDWR), 0));
  auto& block = *reinterpret_cast<ipc::Block*>(base + layout.block_offset(1));
  ipc::Request request;
  request.time_ps = block.clock.now_ps();
  request.message = 1 << 30;
  request.verb = ipc::RequestVerb::put;
  request.bytes = sizeof source;
  request.local_address = reinterpret_cast<std::uint64_t>(source);
  request.remote_address = address;
  request.immediate =
      apenet::message::PutNotice{apenet::message::PutNoticeKind::rendezvous, 0, receive}.encode();
  ipc::Rings& rings = block.rings;
  std::memcpy(static_cast<void*>(&rings.requests[rings.request_head % ipc::request_ring]), &request,
              sizeof request);
  ++rings.request_head;
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto address = reinterpret_cast<std::uint64_t>(memory);
  MPI_Bcast(&address, sizeof address, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    std::memset(source, 'A', sizeof source);
    for (std::uint32_t number = 0; number < 4; ++number) put_to(address, 0x80000000 + number);
  }
  char large[100000] = {};
  for (int i = 0; i < 4; ++i) MPI_Bcast(large, sizeof large, MPI_CHAR, i % 2, MPI_COMM_WORLD);
  if (rank == 0) std::printf("memory of rank 0: %s\n", memory[0] == 0 ? "untouched" : "overwritten");
  MPI_Finalize();
}
