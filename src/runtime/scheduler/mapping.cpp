#include "runtime/scheduler/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace apenet {

Mapping::Mapping(std::uint32_t process_count) : layout_{process_count} {
  fd_ = memfd_create("apenet", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  const std::size_t size = layout_.total_bytes();
  void* base = MAP_FAILED;
  struct stat status {};
  // Seal the size: a process that truncated the file would end the simulator by SIGBUS.
  if (ftruncate(fd_, static_cast<off_t>(size)) == 0 &&
      fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 && fstat(fd_, &status) == 0) {
    base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
  }
  if (base == MAP_FAILED) {
    const int error = errno;
    close(fd_);
    throw std::system_error(error, std::generic_category(), "mapping of " + std::to_string(size) + " bytes");
  }
  base_ = static_cast<std::byte*>(base);
  inode_ = status.st_ino;
  new (base_) ipc::Header{};
  header().process_count = process_count;
  header().simulator_id = static_cast<std::uint32_t>(getpid());
  running().store(process_count);
  // Do not touch the rings, so that they take no memory until used. Their initial content is zero.
  for (std::uint32_t rank = 0; rank < process_count; ++rank) {
    ipc::Block& fresh = block(rank);
    new (&fresh.turn) ipc::Turn{};
    new (&fresh.clock) ipc::Clock{};
    new (&fresh.progress) ipc::Progress{};
    new (&fresh.lock) ipc::ThreadLock{};
    new (&fresh.identity) ipc::Identity{};
    new (&fresh.place) ipc::Place{};
    new (&fresh.note) ipc::WaitNote{};
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
