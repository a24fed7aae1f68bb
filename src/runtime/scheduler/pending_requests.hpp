// PendingRequests: the requests in progress, and their payload bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/ipc/protocol.hpp"
#include "runtime/scheduler/held_payloads.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/spill_file.hpp"

namespace apenet {

// One request, from its post to its last completion.
struct PendingRequest {
  ipc::Request request;
  std::uint32_t rank = 0;                           // the rank that posted it
  std::uint8_t completions_due = 0;                 // complete() calls still to come
  bool payload_due = false;                         // put, get: the bytes have not been moved yet
  bool has_arrived = false;                         // send: the target has been told
  bool staged = false;                              // put: the source bytes have been read
  ipc::AccessFault fault = ipc::AccessFault::none;  // if set, no bytes are moved
  std::vector<std::byte> staging;  // as long as ever needed: to clear it anew for each request takes time
  std::size_t staged_bytes = 0;    // size of `staging`, or of the spill file
  std::optional<std::uint64_t> spilled_at;  // staged bytes lie in the spill file, not in `staging`
  HeldPayload payload;                      // send: what its slot held

  [[nodiscard]] std::span<const std::byte> staged_data() const { return {staging.data(), staged_bytes}; }
  void keep(std::span<const std::byte> bytes);  // in `staging`
};

// A slab of pending requests. The model identifies a request by (generation << 24 | index). This number is
// never reused, as nic.hpp requires, and needs no search.
class PendingRequests {
 public:
  // Throws RankError if there are too many pending requests.
  std::uint64_t add(std::uint32_t rank, const ipc::Request& request);
  [[nodiscard]] PendingRequest& at(std::uint64_t number);
  [[nodiscard]] std::size_t in_progress() const { return slab_.size() - free_.size(); }
  // Frees the request if nothing is due any more.
  void settle(std::uint64_t number);
  // Calls visit(pending) for each send that has not arrived.
  template <typename Visit>
  void for_each_send(Visit visit) {
    for (PendingRequest& pending : slab_) {
      if (pending.request.verb == ipc::RequestVerb::send && pending.completions_due > 0 &&
          !pending.has_arrived)
        visit(pending);
    }
  }
  // The one in progress that was posted first: "a send of 64 bytes from rank 0 to rank 1"; empty if there is
  // none.
  [[nodiscard]] std::string oldest() const;
  // Reads a put's source bytes into the pending request. Call when the program is told that it may reuse the
  // source. Throws RankError if they are more than the simulator may hold in memory, and the host has no room
  // for them.
  void stage(PendingRequest& pending, ProcessMemory& memory);
  // Moves the bytes of a put or get to their destination.
  void move_bytes(PendingRequest& pending, ProcessMemory& memory);

  // Staged bytes of all ranks that are held in memory; the spill file holds what comes on top.
  static constexpr std::size_t most_staged_bytes = std::size_t{256} << 20;

 private:
  void spill(PendingRequest& pending, ProcessMemory& memory);
  void unspill(PendingRequest& pending, ProcessMemory& memory);
  static constexpr std::uint64_t index_bits = 24;
  std::vector<PendingRequest> slab_;
  std::vector<std::uint32_t> free_;
  std::uint64_t generation_ = 0;
  std::size_t staged_bytes_ = 0;  // in memory
  SpillFile spilled_;
};

// Checks that the target has opened the memory that a put or get names by key, and resolves its address.
void permit(PendingRequest& pending, const ipc::RegionTable& regions_of_target);
// Which access has failed, and where: "of rank 1, a put of 64 bytes to rank 0, ...". Offsets instead of
// addresses, because these are the host's.
[[nodiscard]] std::string failed_access(const PendingRequest& pending,
                                        const ipc::RegionTable& regions_of_target);
// Executes a lock at its target. Call after permit(), and before move_bytes() moves the result.
void execute_lock(PendingRequest& pending, ProcessMemory& memory);

}  // namespace apenet
