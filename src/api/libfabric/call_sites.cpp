#include "api/libfabric/call_sites.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>

namespace apenet::libfabric {

std::uint16_t CallSites::of(const ipc::CallNote& note) {
  const std::uint64_t caller = note.caller.get();
  if (caller == 0) return 0;
  // A new address may be of another file than the same one before.
  if (!is_binding_.contains(caller) && loaded_.refresh()) {
    known_.clear();
    is_binding_.clear();
  }
  return of_address(is_binding(caller) ? program_address(note.frame.get()) : caller);
}

bool CallSites::is_binding(std::uint64_t address) {
  if (const auto found = is_binding_.find(address); found != is_binding_.end()) return found->second;
  const ipc::CodeFile* file = loaded_.find(address);
  if (file == nullptr || ipc::is_mpi_library(file->path)) return is_binding_[address] = file != nullptr;
  const auto symbols = symbols_.try_emplace(file->path, file->path).first;
  const std::string function = symbols->second.function_of(address - file->loaded_at);
  return is_binding_[address] = ipc::is_mpi_function(file->path, function);
}

std::uint16_t CallSites::of_address(std::uint64_t address) {
  if (const auto found = known_.find(address); found != known_.end()) return found->second;
  const ipc::CodeFile* file = loaded_.find(address);
  if (file == nullptr || file->path.empty() || sites_.size() == std::numeric_limits<std::uint16_t>::max())
    return known_[address] = 0;
  const auto path = std::find(paths_.begin(), paths_.end(), file->path);
  const auto number = static_cast<std::uint32_t>(path - paths_.begin());
  if (path == paths_.end()) paths_.push_back(file->path);
  sites_.push_back({number, address - file->loaded_at});
  return known_[address] = static_cast<std::uint16_t>(sites_.size());
}

// The stack may end before what is examined, so the kernel reads it.
std::uint64_t CallSites::program_address(std::uint64_t frame) {
  constexpr std::size_t examined_bytes = 2048;
  constexpr std::size_t step = 512;
  std::array<std::uint64_t, step / sizeof(std::uint64_t)> words{};
  for (std::size_t at = 0; frame != 0 && at < examined_bytes; at += step) {
    const iovec here{words.data(), step};
    const iovec there{reinterpret_cast<void*>(frame + at), step};  // NOLINT(performance-no-int-to-ptr)
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != ssize_t{step}) return 0;
    for (const std::uint64_t on_stack : words) {
      const std::uint64_t word = ipc::code_address(on_stack);
      const ipc::CodeFile* file = loaded_.find(word);
      if (file == nullptr) continue;
      ipc::CallBytes before{};
      if (word < file->begin + before.size()) continue;
      const std::uint64_t code = word - before.size();
      std::memcpy(before.data(), reinterpret_cast<const void*>(code),  // NOLINT(performance-no-int-to-ptr)
                  before.size());
      if (ipc::may_be_call(before) && !is_binding(word)) return word;
    }
  }
  return 0;
}

}  // namespace apenet::libfabric
