#include "runtime/ipc/image_records.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "runtime/ipc/host_call.hpp"

namespace apenet::ipc {

// Maps the record instead of writing to the file: a write beyond the user's limit of file sizes would be
// answered with SIGXFSZ.
template <typename Visit>
void ImageRecords::visit_bytes(std::size_t offset, Visit visit) const {
  if (!is_found()) return;
  const int before = errno;
  const int file = host_call(SYS_openat, AT_FDCWD, paths_.images.data(), O_RDWR | O_CLOEXEC);
  if (file >= 0) {
    const std::size_t begin = offset / page_bytes * page_bytes;
    void* memory =
        mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(begin));
    host_call(SYS_close, file, 0);
    if (memory != MAP_FAILED) {
      visit(static_cast<std::byte*>(memory) + (offset - begin));
      munmap(memory, page_bytes);
    }
  }
  errno = before;
}

void ImageRecords::find(const char* mapping) {
  const int before = errno;
  paths_ = mapping == nullptr ? SimulationPaths{} : find_simulation(mapping);
  errno = before;
}

void ImageRecords::write(const ImageRecord& record) const {
  visit_bytes(ImageLayout::record_offset(record.process_id),
              [&record](std::byte* at) { std::memcpy(at, &record, sizeof record); });
}

ImageRecord ImageRecords::read(std::uint32_t process_id) const {
  ImageRecord record;
  visit_bytes(ImageLayout::record_offset(process_id),
              [&record](const std::byte* at) { std::memcpy(&record, at, sizeof record); });
  return record.process_id == process_id ? record : ImageRecord{.process_id = process_id};
}

void ImageRecords::note(std::uint32_t rank, const StartFinding& finding) const {
  if (rank >= paths_.process_count) return;
  visit_bytes(ImageLayout::finding_offset(rank), [&finding](std::byte* at) {
    StartFinding known;
    std::memcpy(&known, at, sizeof known);
    if (finding.kind > known.kind) std::memcpy(at, &finding, sizeof finding);
  });
}

// Processes and threads of the rank take places at the same time: whoever sets the first letter has the
// place.
void ImageRecords::note_made(std::uint32_t rank, std::string_view name) const {
  if (rank >= paths_.process_count) return;
  visit_bytes(ImageLayout::names_offset(paths_.process_count, rank), [name](std::byte* at) {
    for (char(&place)[MadeNames::name_bytes] : reinterpret_cast<MadeNames*>(at)->names) {
      char free = '\0';
      if (!std::atomic_ref(place[0]).compare_exchange_strong(free, name[0])) continue;
      std::copy(name.begin() + 1, name.end(), place + 1);
      return;
    }
  });
}

void ImageRecords::forget_made(std::uint32_t rank, std::string_view name) const {
  if (rank >= paths_.process_count) return;
  visit_bytes(ImageLayout::names_offset(paths_.process_count, rank), [name](std::byte* at) {
    for (char(&place)[MadeNames::name_bytes] : reinterpret_cast<MadeNames*>(at)->names) {
      if (std::string_view(place, strnlen(place, sizeof place)) != name) continue;
      std::fill(place + 1, place + MadeNames::name_bytes, '\0');
      std::atomic_ref<char>(place[0]).store('\0');
      return;
    }
  });
}

std::uint32_t own_process_id() {
  std::array<char, 16> text{};
  std::uint32_t process_id = 0;
  const int bytes = read_link("/proc/self", text.data(), text.size());
  if (bytes > 0) std::from_chars(text.data(), text.data() + bytes, process_id);
  return process_id;
}

std::uint32_t child_faults() {
  rusage use{};
  host_call(SYS_getrusage, RUSAGE_CHILDREN, &use);
  return static_cast<std::uint32_t>(use.ru_minflt + use.ru_majflt);
}

}  // namespace apenet::ipc
