#include "runtime/scheduler/process_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/ipc/futex.hpp"

namespace apenet {
namespace {

enum class Access { done, not_there, forbidden };

template <typename Call>
Access transfer(Call call, std::uint32_t process_id, std::byte* local, std::uint64_t remote,
                std::size_t bytes) {
  if (process_id == 0) return Access::not_there;
  while (bytes > 0) {
    iovec here{local, bytes};
    iovec there{reinterpret_cast<void*>(remote),
                bytes};  // NOLINT(performance-no-int-to-ptr): another process's
    const ssize_t moved = call(static_cast<pid_t>(process_id), &here, 1UL, &there, 1UL, 0UL);
    if (moved < 0 && (errno == EPERM || errno == ENOSYS)) return Access::forbidden;
    if (moved <= 0) return Access::not_there;
    local += moved;
    remote += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<std::size_t>(moved);
  }
  return Access::done;
}

}  // namespace

bool ProcessMemory::read(std::uint32_t rank, std::uint64_t address, std::span<std::byte> to) {
  if (!is_forbidden_) {
    const Access access = transfer(process_vm_readv, process_ids_.of(rank), to.data(), address, to.size());
    // If the process runs now, these bytes were its own, and not those of a later process with its id.
    if (access != Access::forbidden) return access == Access::done && process_ids_.still_runs(rank);
    is_forbidden_ = true;
  }
  for (std::size_t done = 0; done < to.size(); done += ipc::window_bytes) {
    const std::size_t part = std::min<std::size_t>(ipc::window_bytes, to.size() - done);
    if (!order(rank, address + done, part, true)) return false;
    std::memcpy(to.data() + done, shared_.window(rank), part);
  }
  return true;
}

bool ProcessMemory::write(std::uint32_t rank, std::uint64_t address, std::span<const std::byte> from) {
  if (!is_forbidden_) {
    auto* bytes = const_cast<std::byte*>(from.data());  // an iovec has no const
    const std::uint32_t process_id = process_ids_.running(rank);
    const Access access = transfer(process_vm_writev, process_id, bytes, address, from.size());
    if (access != Access::forbidden) return access == Access::done;
    is_forbidden_ = true;
  }
  for (std::size_t done = 0; done < from.size(); done += ipc::window_bytes) {
    const std::size_t part = std::min<std::size_t>(ipc::window_bytes, from.size() - done);
    std::memcpy(shared_.window(rank), from.data() + done, part);
    if (!order(rank, address + done, part, false)) return false;
  }
  return true;
}

bool ProcessMemory::read(const Place& place, std::span<std::byte> to) {
  if (place.process == 0) return read(place.rank, place.address, to);
  if (!process_ids_.is_started_by(place.rank, place.process)) return false;
  return transfer(process_vm_readv, place.process, to.data(), place.address, to.size()) == Access::done;
}

bool ProcessMemory::write(const Place& place, std::span<const std::byte> from) {
  if (place.process == 0) return write(place.rank, place.address, from);
  if (!process_ids_.is_started_by(place.rank, place.process)) return false;
  auto* bytes = const_cast<std::byte*>(from.data());  // an iovec has no const
  return transfer(process_vm_writev, place.process, bytes, place.address, from.size()) == Access::done;
}

bool ProcessMemory::move(std::uint32_t from_rank, std::uint64_t from, std::uint32_t to_rank, std::uint64_t to,
                         std::size_t bytes) {
  between_.resize(std::max(between_.size(), std::min(bytes, chunk_bytes)));
  for (std::size_t done = 0; done < bytes; done += chunk_bytes) {
    const std::span part(between_.data(), std::min(chunk_bytes, bytes - done));
    if (!read(from_rank, from + done, part) || !write(to_rank, to + done, part)) return false;
  }
  return true;
}

bool ProcessMemory::needs_no_help(std::uint32_t rank) {
  std::byte nothing{};
  if (!is_forbidden_)
    is_forbidden_ =
        transfer(process_vm_readv, process_ids_.of(rank), &nothing, 0, sizeof nothing) == Access::forbidden;
  return !is_forbidden_;
}

bool ProcessMemory::order(std::uint32_t rank, std::uint64_t address, std::size_t bytes, bool into_window) {
  ipc::Grant& grant = shared_.block(rank).grant;
  if (grant.wait == ipc::Wait::finished) return false;
  if (!leaves(rank, ipc::Run::overlapped)) return false;
  grant.copy = {.address = address, .bytes = bytes, .into_window = into_window ? 1U : 0U, .failed = 0};
  grant.run.store(ipc::Run::copies);
  ipc::futex_wake(grant.run);
  if (!leaves(rank, ipc::Run::copies)) {
    grant.run.store(ipc::Run::waits);
    return false;
  }
  return grant.copy.failed == 0;
}

// Waits until Grant::run has another value. Returns false if the process has ended or gives no answer.
bool ProcessMemory::leaves(std::uint32_t rank, std::uint32_t run) {
  constexpr timespec patience{.tv_sec = 0, .tv_nsec = 100'000'000};
  constexpr int most_waits = 100;  // after 10 s without an answer the process counts as broken
  std::atomic<std::uint32_t>& word = shared_.block(rank).grant.run;
  for (int waits = 0; word.load() == run;) {
    ipc::futex_wait(word, run, &patience);
    if (word.load() == run && (++waits > most_waits || process_ids_.running(rank) == 0)) return false;
  }
  return true;
}

}  // namespace apenet
