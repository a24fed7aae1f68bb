#include "runtime/scheduler/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <new>
#include <system_error>

#include "runtime/ipc/descriptor_path.hpp"

namespace apenet {

namespace {

// A memfd that keeps its size: a process that truncated it would end the simulator by SIGBUS.
int make_memory(const char* name, std::size_t bytes) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  const char* call = "ftruncate";
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    call = "fcntl(F_ADD_SEALS)";
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) return fd;
  }
  const int error = errno;
  close(fd);
  throw std::system_error(error, std::generic_category(),
                          std::string(call) + " of a memfd of " + std::to_string(bytes) + " bytes");
}

template <typename Record>
Record read_from(int file, std::size_t offset) {
  std::array<std::byte, sizeof(Record)> bytes{};
  if (pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)) != sizeof(Record)) return {};
  return std::bit_cast<Record>(bytes);
}

}  // namespace

SharedMemory::SharedMemory(std::uint32_t process_count)
    : layout_{process_count},
      header_fd_(make_memory("apenet-header", ipc::Layout::running_offset())),
      parts_fd_(make_memory("apenet", layout_.total_bytes())),
      images_fd_(make_memory("apenet-images", ipc::ImageLayout::total_bytes(process_count))) {
  struct stat status {};
  void* base =
      mmap(nullptr, layout_.total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, parts_fd_, 0);
  // From the seal on, nobody else can write the header. Kernels before 5.1 do not know it.
  if (base == MAP_FAILED || fstat(parts_fd_, &status) != 0 ||
      mmap(base, ipc::Layout::running_offset(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, header_fd_,
           0) == MAP_FAILED ||
      (fcntl(header_fd_, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0 && errno != EINVAL)) {
    throw std::system_error(errno, std::generic_category(),
                            "mmap of " + std::to_string(layout_.total_bytes()) + " bytes");
  }
  base_ = static_cast<std::byte*>(base);
  inode_ = status.st_ino;
  new (base_) ipc::Header{};
  header().process_count = process_count;
  header().simulator_id = static_cast<std::uint32_t>(getpid());
  header().parts_fd = static_cast<std::uint32_t>(parts_fd_);
  header().images_fd = static_cast<std::uint32_t>(images_fd_);
  header().made_at_s = time(nullptr);
  running().count.store(process_count);
  // Do not touch the rings, so that they take no memory until used. Their initial content is zero.
  for (std::uint32_t rank = 0; rank < process_count; ++rank) {
    ipc::Block& fresh = block(rank);
    new (&fresh.grant) ipc::Grant{};
    new (&fresh.clock) ipc::Clock{};
    new (&fresh.progress) ipc::Progress{};
    new (&fresh.lock) ipc::ThreadLock{};
    new (&fresh.identity) ipc::Identity{};
    new (&fresh.place) ipc::RankNode{};
    new (&fresh.note) ipc::WaitNote{};
    new (&fresh.timer_due_ps) std::atomic<std::int64_t>{ipc::never_ps};
  }
}

SharedMemory::~SharedMemory() {
  munmap(base_, layout_.total_bytes());
  for (const int fd : {images_fd_, parts_fd_, header_fd_}) {
    if (fd >= 0) close(fd);
  }
}

// The mapping keeps the file of the parts, which has no content any more.
void SharedMemory::discard() {
  if (parts_fd_ < 0) return;
  fallocate(parts_fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
            static_cast<off_t>(layout_.total_bytes()));
  for (int* fd : {&images_fd_, &parts_fd_, &header_fd_}) {
    close(*fd);
    *fd = -1;
  }
}

ipc::ImageRecord SharedMemory::image(std::uint32_t process_id) const {
  const auto found = read_from<ipc::ImageRecord>(images_fd_, ipc::ImageLayout::record_offset(process_id));
  return found.process_id == process_id ? found : ipc::ImageRecord{.process_id = process_id};
}

std::vector<ipc::ImageRecord> SharedMemory::images() const {
  std::vector<ipc::ImageRecord> found;
  constexpr auto end = static_cast<off_t>(ipc::ImageLayout::finding_offset(0));
  // Most of the file is a hole.
  for (off_t at = lseek(images_fd_, 0, SEEK_DATA); at >= 0 && at < end;
       at = lseek(images_fd_, at, SEEK_DATA)) {
    const off_t hole = std::min(lseek(images_fd_, at, SEEK_HOLE), end);
    for (; at < hole; at += sizeof(ipc::ImageRecord)) {
      const auto record = read_from<ipc::ImageRecord>(images_fd_, static_cast<std::size_t>(at));
      if (record.state != ipc::ImageState::unknown) found.push_back(record);
    }
  }
  return found;
}

ipc::MadeNames SharedMemory::made_names(std::uint32_t rank) const {
  return read_from<ipc::MadeNames>(images_fd_, ipc::ImageLayout::names_offset(process_count(), rank));
}

ipc::StartFinding SharedMemory::start_finding(std::uint32_t rank) const {
  return read_from<ipc::StartFinding>(images_fd_, ipc::ImageLayout::finding_offset(rank));
}

std::string SharedMemory::path() const {
  return ipc::descriptor_path(header_fd_);
}

}  // namespace apenet
