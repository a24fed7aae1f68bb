#include "runtime/scheduler/flights.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "runtime/scheduler/rank_error.hpp"

namespace apenet {
namespace {

constexpr std::size_t chunk_bytes = 256 * 1024;  // fits the second-level cache between read and write

void note_access(Flight& flight, bool done) {
  if (!done && flight.fault == ipc::AccessFault::none) flight.fault = ipc::AccessFault::bad_address;
}

}  // namespace

std::uint64_t Flights::add(std::uint32_t rank, const ipc::Request& request) {
  if (free_.empty()) {
    if (slab_.size() >> index_bits != 0)
      throw RankError(rank, "has exceeded the limit of 2^24 requests in progress, which all ranks share");
    free_.push_back(static_cast<std::uint32_t>(slab_.size()));
    slab_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Flight& flight = slab_[index];
  std::memcpy(static_cast<void*>(&flight.request), &request,
              offsetof(ipc::Request, inline_data) + request.inline_length);
  flight.rank = rank;
  const bool is_send = request.verb == ipc::RequestVerb::send;
  const bool is_get = request.verb == ipc::RequestVerb::get;
  // Completes as `arrived` or `got`.
  const bool arrives = is_send || is_get || (request.flags & ipc::notify_target) != 0;
  flight.completions_due =
      static_cast<std::uint8_t>(arrives + ((request.flags & ipc::want_local) != 0 && !is_get) +
                                ((request.flags & ipc::want_remote) != 0 && !is_get));
  flight.land_due = !is_send;
  flight.staged = false;
  flight.fault = ipc::AccessFault::none;
  return ++generation_ << index_bits | index;
}

Flight& Flights::at(std::uint64_t number) {
  return slab_[number & ((1U << index_bits) - 1)];
}

void Flights::settle(std::uint64_t number) {
  Flight& flight = at(number);
  if (flight.completions_due != 0 || flight.land_due) return;
  flight.staging.clear();
  if (flight.staging.capacity() > chunk_bytes) flight.staging.shrink_to_fit();
  free_.push_back(static_cast<std::uint32_t>(number & ((1U << index_bits) - 1)));
}

void stage(Flight& flight, ProcessMemory& memory) {
  if (flight.staged || !flight.land_due) return;
  flight.staged = true;
  // Read in chunks: an invalid request may name more bytes than the process has.
  const auto bytes = static_cast<std::size_t>(flight.request.bytes);
  for (std::size_t done = 0; done < bytes && flight.fault == ipc::AccessFault::none; done += chunk_bytes) {
    const std::size_t part = std::min(chunk_bytes, bytes - done);
    flight.staging.resize(done + part);
    note_access(flight, memory.read(flight.rank, flight.request.local_address + done,
                                    std::span(flight.staging).subspan(done, part)));
  }
}

void permit(Flight& flight, const ipc::RegionTable& regions_of_target) {
  ipc::Request& request = flight.request;
  if ((request.flags & ipc::by_key) == 0) return;
  const bool is_get = request.verb == ipc::RequestVerb::get;
  const ipc::AccessFault fault =
      regions_of_target.find(regions_of_target.domain_of(request.endpoint), request.key,
                             request.remote_address, static_cast<std::uint64_t>(request.bytes),
                             is_get ? ipc::may_read : ipc::may_write, request.remote_address);
  if (flight.fault == ipc::AccessFault::none) flight.fault = fault;
}

void move_bytes(Flight& flight, ProcessMemory& memory) {
  flight.land_due = false;
  const ipc::Request& request = flight.request;
  if (flight.fault != ipc::AccessFault::none) return;
  if (flight.staged) {
    note_access(flight, memory.write(request.target, request.remote_address, flight.staging));
    return;
  }
  const auto bytes = static_cast<std::size_t>(request.bytes);
  const bool is_get = request.verb == ipc::RequestVerb::get;
  std::vector<std::byte>& buffer = flight.staging;
  buffer.resize(std::min(bytes, chunk_bytes));
  const std::uint64_t from = is_get ? request.remote_address : request.local_address;
  const std::uint64_t to = is_get ? request.local_address : request.remote_address;
  const std::uint32_t reader = is_get ? request.target : flight.rank;
  const std::uint32_t writer = is_get ? flight.rank : request.target;
  for (std::size_t done = 0; done < bytes && flight.fault == ipc::AccessFault::none; done += chunk_bytes) {
    const std::span part(buffer.data(), std::min(chunk_bytes, bytes - done));
    note_access(flight, memory.read(reader, from + done, part) && memory.write(writer, to + done, part));
  }
}

}  // namespace apenet
