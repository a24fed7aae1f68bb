#include "runtime/launch/code_places.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "runtime/ipc/call_instructions.hpp"

namespace apenet {
namespace {

bool read_memory(int process_id, std::uint64_t address, void* to, std::size_t bytes) {
  iovec here{to, bytes};
  // The address belongs to the other process.
  iovec there{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return process_vm_readv(process_id, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

// The C library keeps a thread's control block at the upper end of its stack. It begins with its own address,
// twice (tcbhead_t: tcb, dtv, self), on x86-64. The memory behind it belongs to others, even within one
// mapping.
bool begins_control_block(const std::vector<std::uint64_t>& words, std::size_t i, std::uint64_t from) {
  const std::uint64_t address = from + i * sizeof(std::uint64_t);
  return words[i] == address && i + 2 < words.size() && words[i + 2] == address;
}

}  // namespace

CodePlaces::CodePlaces(int process_id) : process_id_(process_id) {
  std::ifstream maps("/proc/" + std::to_string(process_id) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    Mapping mapping;
    char dash = 0;
    std::string access;
    std::string device;
    std::uint64_t inode = 0;
    fields >> std::hex >> mapping.begin >> dash >> mapping.end >> access >> mapping.offset >> device;
    if (fields) memory_.emplace_back(mapping.begin, mapping.end);
    if (!(fields >> std::dec >> inode >> std::ws) || access.size() < 3 || access[2] != 'x') continue;
    if (std::getline(fields, mapping.file) && mapping.file.starts_with('/'))
      code_.push_back(std::move(mapping));
  }
}

const CodePlaces::Mapping* CodePlaces::mapping_of(std::uint64_t address) const {
  const auto after = std::upper_bound(code_.begin(), code_.end(), address,
                                      [](std::uint64_t at, const Mapping& one) { return at < one.begin; });
  if (after == code_.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

// Whether the instruction before the address may be a call.
bool CodePlaces::follows_call(std::uint64_t address) const {
  ipc::CallBytes before{};
  return address >= before.size() &&
         read_memory(process_id_, address - before.size(), before.data(), before.size()) &&
         ipc::may_be_call(before);
}

std::uint64_t CodePlaces::end_of_memory(std::uint64_t address) const {
  const auto after = std::upper_bound(
      memory_.begin(), memory_.end(), address,
      [](std::uint64_t at, const std::pair<std::uint64_t, std::uint64_t>& one) { return at < one.first; });
  return after == memory_.begin() ? 0 : std::prev(after)->second;
}

std::vector<std::uint64_t> CodePlaces::calls_on_stack(std::uint64_t from, std::size_t bytes) const {
  constexpr std::size_t step = 512;
  const std::uint64_t end = std::min(from + bytes, end_of_memory(from));
  std::vector<std::uint64_t> words;
  for (std::uint64_t at = from; at < end; at += step) {
    const std::size_t count = std::min<std::uint64_t>(step, end - at) / sizeof(std::uint64_t);
    words.resize(words.size() + count);
    if (read_memory(process_id_, at, &words[words.size() - count], count * sizeof(std::uint64_t))) continue;
    words.resize(words.size() - count);
    break;
  }
  std::vector<std::uint64_t> calls;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (begins_control_block(words, i, from)) break;
    const std::uint64_t address = ipc::code_address(words[i]);
    if (mapping_of(address) != nullptr && follows_call(address)) calls.push_back(address);
  }
  return calls;
}

std::string CodePlaces::file_of(std::uint64_t address) const {
  const Mapping* mapping = mapping_of(address);
  return mapping == nullptr ? std::string{} : mapping->file;
}

std::string CodePlaces::path_of(const Mapping& mapping) const {
  return "/proc/" + std::to_string(process_id_) + "/root" + mapping.file;
}

const ipc::CodeSymbols& CodePlaces::symbols_of(const Mapping& mapping) {
  const auto known = symbols_.find(mapping.file);
  if (known != symbols_.end()) return known->second;
  return symbols_.emplace(mapping.file, ipc::CodeSymbols(path_of(mapping))).first->second;
}

std::uint64_t CodePlaces::linked_address(std::uint64_t address) {
  const Mapping* mapping = mapping_of(address);
  if (mapping == nullptr) return 0;
  return symbols_of(*mapping).linked_address(address - mapping->begin + mapping->offset);
}

std::string CodePlaces::function_of(std::uint64_t address) {
  const std::uint64_t linked = linked_address(address);
  if (linked == 0) return {};
  return symbols_of(*mapping_of(address)).function_of(linked);
}

// Stubs that lead to other files have no name.
bool CodePlaces::may_leave_file(std::uint64_t address) {
  ipc::CallBytes before{};
  if (address < before.size() ||
      !read_memory(process_id_, address - before.size(), before.data(), before.size()))
    return true;
  const std::optional<std::int64_t> distance = ipc::distance_of_call(before);
  return !distance || function_of(address + static_cast<std::uint64_t>(*distance)).empty();
}

std::string CodePlaces::line_of_call(std::uint64_t address, SourceLines& lines) {
  const std::uint64_t linked = linked_address(address);
  if (linked == 0) return {};
  const Mapping& mapping = *mapping_of(address);
  return symbols_of(mapping).has_lines() ? lines.line_of(path_of(mapping), mapping.file, linked - 1)
                                         : std::string{};
}

}  // namespace apenet
