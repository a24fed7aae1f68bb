// EventQueue: the reports about the program's objects, not its operations. On endpoints without connections
// these are the program's own entries, and the ends of insertions and registrations whose report it
// requested. Nothing comes from the network.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/wait_descriptor.hpp"
#include "api/libfabric/waiting.hpp"

namespace apenet::libfabric {

// Serialised by a mutex of its own: one thread may put in what another waits for inside the library.
class EventQueue : public fid_eq, public Usable {
 public:
  using Handle = fid_eq;
  EventQueue(Fabric& fabric, const fi_eq_attr& attributes, void* user_context);

  // As fi_eq_write, without asking whether the program may.
  void push(std::uint32_t event, const void* entry, std::size_t bytes);
  // `count` of the object's things are done: FI_AV_COMPLETE, FI_MR_COMPLETE.
  void push_done(std::uint32_t event, ::fid& object, void* context, std::uint64_t count);
  void push_error(const fi_eq_err_entry& error);

  // As fi_eq_read and fi_eq_readerr.
  ssize_t read(std::uint32_t* event, void* entry, std::size_t room, std::uint64_t flags);
  ssize_t read_error(fi_eq_err_entry& entry, std::uint64_t flags);
  [[nodiscard]] bool empty() const;

  [[nodiscard]] bool takes_writes() const { return takes_writes_; }
  [[nodiscard]] const WaitDescriptor& descriptor() const { return descriptor_; }
  [[nodiscard]] Transport& transport() const { return fabric_.get().transport(); }

 private:
  struct QueuedEvent {
    std::uint32_t event = 0;
    bool is_error = false;
    std::vector<std::byte> bytes;
  };
  ssize_t take(bool error, std::uint32_t* event, void* entry, std::size_t room, std::uint64_t flags);
  void append(QueuedEvent entry);

  Use<Fabric> fabric_;
  mutable std::mutex mutex_;
  std::deque<QueuedEvent> entries_;
  WaitDescriptor descriptor_;
  bool takes_writes_;
  WaitMembership membership_;
};

int open_eq(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** eq, void* context);

}  // namespace apenet::libfabric
