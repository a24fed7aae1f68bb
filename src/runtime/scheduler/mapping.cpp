#include "runtime/scheduler/mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace apenet {

Mapping::Mapping(std::uint32_t process_count) : layout_{process_count} {
  fd_ = memfd_create("apenet", MFD_CLOEXEC);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  const std::size_t size = layout_.total_bytes();
  void* base = MAP_FAILED;
  if (ftruncate(fd_, static_cast<off_t>(size)) == 0) {
    base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
  }
  if (base == MAP_FAILED) {
    const int error = errno;
    close(fd_);
    throw std::system_error(error, std::generic_category(), "mapping of " + std::to_string(size) + " bytes");
  }
  base_ = static_cast<std::byte*>(base);
  new (base_) ipc::Header{};
  header().process_count = process_count;
  header().simulator_id = static_cast<std::uint32_t>(getpid());
  header().running.store(process_count);
  // Only the leading fields are initialised: the rings stay untouched, and thus unbacked, until they are
  // used.
  for (std::uint32_t rank = 0; rank < process_count; ++rank) {
    ipc::Block& fresh = block(rank);
    fresh.run.store(ipc::Run::may_run);
    fresh.note.receive_source = -1;
    fresh.note.send_target = -1;
    fresh.next_message = 1;
  }
}

Mapping::~Mapping() {
  munmap(base_, layout_.total_bytes());
  close(fd_);
}

std::string Mapping::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_);
}

}  // namespace apenet
