#include "runtime/scheduler/pending_requests.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "runtime/scheduler/rank_error.hpp"

namespace apenet {
namespace {

constexpr std::size_t chunk_bytes = ProcessMemory::chunk_bytes;

void note_access(PendingRequest& pending, bool done) {
  if (!done && pending.fault == ipc::AccessFault::none) pending.fault = ipc::AccessFault::bad_address;
}

}  // namespace

void PendingRequest::keep(std::span<const std::byte> bytes) {
  staging.resize(std::max(staging.size(), bytes.size()));
  std::copy(bytes.begin(), bytes.end(), staging.begin());
  staged_bytes = bytes.size();
}

std::uint64_t PendingRequests::add(std::uint32_t rank, const ipc::Request& request) {
  if (free_.empty()) {
    if (slab_.size() >> index_bits != 0)
      throw RankError(rank, "has exceeded the limit of 2^24 requests in progress, which all ranks share");
    free_.push_back(static_cast<std::uint32_t>(slab_.size()));
    slab_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  PendingRequest& pending = slab_[index];
  std::memcpy(static_cast<void*>(&pending.request), &request,
              offsetof(ipc::Request, inline_data) + request.inline_length);
  pending.rank = rank;
  const bool is_send = request.verb == ipc::RequestVerb::send;
  const bool is_get = request.verb == ipc::RequestVerb::get;
  const auto wants = [&request](std::uint8_t flag) { return (request.flags & flag) != 0; };
  // `arrived` or `served` at the target, `got` and the others at the origin.
  pending.completions_due =
      static_cast<std::uint8_t>((is_send || wants(ipc::notify_target)) + is_get + wants(ipc::want_local) +
                                (wants(ipc::want_remote) && !is_get));
  pending.payload_due = !is_send;
  pending.has_arrived = false;
  pending.fault = ipc::AccessFault::none;
  pending.staged = request.verb == ipc::RequestVerb::put && request.inline_length > 0;
  if (pending.staged) pending.keep({request.inline_data, request.inline_length});
  return ++generation_ << index_bits | index;
}

PendingRequest& PendingRequests::at(std::uint64_t number) {
  return slab_[number & ((1U << index_bits) - 1)];
}

std::string PendingRequests::oldest() const {
  const PendingRequest* first = nullptr;
  for (const PendingRequest& pending : slab_) {
    if (pending.completions_due == 0 && !pending.payload_due) continue;
    if (first == nullptr || pending.request.time_ps < first->request.time_ps) first = &pending;
  }
  if (first == nullptr) return {};
  const ipc::Request& request = first->request;
  const bool is_get = request.verb == ipc::RequestVerb::get;
  const char* const verb = request.verb == ipc::RequestVerb::put ? "put" : is_get ? "get" : "send";
  return std::string("a ") + verb + " of " + std::to_string(request.bytes) + " bytes " +
         (is_get ? "by rank " : "from rank ") + std::to_string(first->rank) +
         (is_get ? " from rank " : " to rank ") + std::to_string(request.target);
}

void PendingRequests::settle(std::uint64_t number) {
  PendingRequest& pending = at(number);
  if (pending.completions_due != 0 || pending.payload_due) return;
  if (pending.spilled_at) {
    spilled_.release(pending.staged_bytes);
    pending.spilled_at.reset();
  }
  if (pending.staging.size() > chunk_bytes) {
    staged_bytes_ -= pending.staging.size();
    std::vector<std::byte>().swap(pending.staging);
  }
  free_.push_back(static_cast<std::uint32_t>(number & ((1U << index_bits) - 1)));
}

void PendingRequests::stage(PendingRequest& pending, ProcessMemory& memory) {
  if (pending.staged || !pending.payload_due) return;
  pending.staged = true;
  pending.staged_bytes = 0;
  // Read in chunks: an invalid request may name more bytes than the process has.
  const auto bytes = static_cast<std::size_t>(pending.request.bytes);
  if (bytes > chunk_bytes && bytes > most_staged_bytes - std::min(staged_bytes_, most_staged_bytes)) {
    spill(pending, memory);
    return;
  }
  pending.staging.reserve(bytes);  // growing would hold up to three times as much
  for (std::size_t done = 0; done < bytes && pending.fault == ipc::AccessFault::none; done += chunk_bytes) {
    const std::size_t part = std::min(chunk_bytes, bytes - done);
    pending.staging.resize(std::max(pending.staging.size(), done + part));
    note_access(pending, memory.read(pending.rank, pending.request.local_address + done,
                                     std::span(pending.staging).subspan(done, part)));
    pending.staged_bytes = done + part;
  }
  if (pending.staging.size() > chunk_bytes) staged_bytes_ += pending.staging.size();
}

void PendingRequests::spill(PendingRequest& pending, ProcessMemory& memory) {
  const auto bytes = static_cast<std::size_t>(pending.request.bytes);
  std::vector<std::byte> part(chunk_bytes);
  for (std::size_t done = 0; done < bytes; done += chunk_bytes) {
    const std::span chunk(part.data(), std::min(chunk_bytes, bytes - done));
    note_access(pending, memory.read(pending.rank, pending.request.local_address + done, chunk));
    if (pending.fault != ipc::AccessFault::none) return;
    const std::optional<std::uint64_t> place = spilled_.keep(chunk);
    if (!place)
      throw RankError(pending.rank, "has put " + std::to_string(bytes) +
                                        " bytes, which are held until they are delivered, and " +
                                        SpillFile::folder() +
                                        " has no room for them: name another folder by TMPDIR");
    if (!pending.spilled_at) pending.spilled_at = place;
    pending.staged_bytes = done + chunk.size();
  }
}

void PendingRequests::unspill(PendingRequest& pending, ProcessMemory& memory) {
  const ipc::Request& request = pending.request;
  std::vector<std::byte> part(chunk_bytes);
  for (std::size_t done = 0; done < pending.staged_bytes; done += chunk_bytes) {
    const std::span chunk(part.data(), std::min(chunk_bytes, pending.staged_bytes - done));
    if (!spilled_.read(*pending.spilled_at + done, chunk))
      throw RankError(pending.rank,
                      "has put bytes that cannot be read back from a file in " + SpillFile::folder());
    note_access(pending, memory.write(request.target, request.remote_address + done, chunk));
    if (pending.fault != ipc::AccessFault::none) return;
  }
}

void permit(PendingRequest& pending, const ipc::RegionTable& regions_of_target) {
  ipc::Request& request = pending.request;
  if ((request.flags & ipc::by_key) == 0) return;
  const bool is_lock = (request.flags & ipc::lock) != 0;
  const bool is_get = request.verb == ipc::RequestVerb::get;
  const std::uint32_t access = is_lock ? ipc::may_lock : is_get ? ipc::may_read : ipc::may_write;
  const auto bytes = is_lock ? sizeof(std::int32_t) : static_cast<std::uint64_t>(request.bytes);
  const ipc::AccessFault fault =
      regions_of_target.find(regions_of_target.domain_of(request.endpoint), request.key,
                             request.remote_address, bytes, access, request.remote_address);
  if (pending.fault == ipc::AccessFault::none) pending.fault = fault;
}

std::string failed_access(const PendingRequest& pending, const ipc::RegionTable& regions_of_target) {
  const ipc::Request& request = pending.request;
  const bool is_get = request.verb == ipc::RequestVerb::get;
  const std::string key = std::to_string(request.key);
  std::string text = "of rank " + std::to_string(pending.rank) + (is_get ? ", a get of " : ", a put of ") +
                     std::to_string(request.bytes) + (is_get ? " bytes from rank " : " bytes to rank ") +
                     std::to_string(request.target);
  ipc::Region part;
  switch (pending.fault) {
    case ipc::AccessFault::unknown_key:
      return text + ", which has no region with key " + key;
    case ipc::AccessFault::not_allowed:
      return text + ", whose region with key " + key + " does not permit it";
    case ipc::AccessFault::out_of_bounds:
      if (regions_of_target.part_of(regions_of_target.domain_of(request.endpoint), request.key, part)) {
        text += ", from byte " +
                std::to_string(static_cast<std::int64_t>(request.remote_address - part.begin)) +
                " of a region of " + std::to_string(part.length) + " bytes, key " + key;
      }
      return text;
    case ipc::AccessFault::bad_address:
    case ipc::AccessFault::none:
      break;
  }
  return text + ", of memory that is not mapped at one of them";
}

void execute_lock(PendingRequest& pending, ProcessMemory& memory) {
  const ipc::Request& request = pending.request;
  if (pending.fault != ipc::AccessFault::none) return;
  message::LockOperands operands;
  std::memcpy(&operands, request.inline_data, sizeof operands);
  message::LockResult result;
  const auto word = std::as_writable_bytes(std::span(&result.value, 1));
  note_access(pending, memory.read(request.target, request.remote_address, word));
  if (pending.fault != ipc::AccessFault::none) return;
  if (result.value <= operands.compare) {
    result.succeeded = 1;
    // Wraps around as the hardware's adder does.
    result.value = static_cast<std::int32_t>(static_cast<std::uint32_t>(result.value) +
                                             static_cast<std::uint32_t>(operands.add));
    note_access(pending, memory.write(request.target, request.remote_address, word));
  }
  pending.keep(std::as_bytes(std::span(&result, 1)));
}

void PendingRequests::move_bytes(PendingRequest& pending, ProcessMemory& memory) {
  pending.payload_due = false;
  const ipc::Request& request = pending.request;
  if (pending.fault != ipc::AccessFault::none) return;
  if ((request.flags & ipc::lock) != 0) {
    note_access(pending, memory.write(pending.rank, request.local_address, pending.staged_data()));
    return;
  }
  if (pending.spilled_at) {
    unspill(pending, memory);
    return;
  }
  if (pending.staged) {
    note_access(pending, memory.write(request.target, request.remote_address, pending.staged_data()));
    return;
  }
  const auto bytes = static_cast<std::size_t>(request.bytes);
  const bool is_get = request.verb == ipc::RequestVerb::get;
  const std::uint64_t from = is_get ? request.remote_address : request.local_address;
  const std::uint64_t to = is_get ? request.local_address : request.remote_address;
  const std::uint32_t reader = is_get ? request.target : pending.rank;
  const std::uint32_t writer = is_get ? pending.rank : request.target;
  note_access(pending, memory.move(reader, from, writer, to, bytes));
}

}  // namespace apenet
