// PollSet and WaitSet: several queues and counters that a program asks, or waits for, at once.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <vector>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/wait_descriptor.hpp"

namespace apenet::libfabric {

// Whether a completion queue, an event queue or a counter has what the program has not read.
[[nodiscard]] bool has_news(const fid& object);
// Whether it can wait so. Throws FabricError, which names the call, when not.
void check_wait_object(const char* call, fi_wait_obj asked, const fid_wait* wait_set);

class PollSet : public fid_poll {
 public:
  using Handle = fid_poll;

  explicit PollSet(Domain& domain);

  // Throws FabricError for what is neither a completion queue nor a counter.
  void add(::fid& object);
  void remove(::fid& object);
  // As fi_poll: makes progress when there is no news.
  int poll(void** contexts, int count);
  [[nodiscard]] Transport& transport() const { return domain_.get().transport(); }

 private:
  [[nodiscard]] int find_news(void** contexts, int count) const;

  Use<Domain> domain_;
  std::vector<::fid*> objects_;  // in the order in which they were added
};

// Objects enter and leave it when they are opened and closed.
class WaitSet : public fid_wait {
 public:
  using Handle = fid_wait;

  WaitSet(Fabric& fabric, bool with_descriptor);

  void add(::fid& object) { objects_.push_back(&object); }
  void remove(::fid& object);
  // As fi_wait; the timeout is virtual time.
  int wait(int timeout_ms);
  [[nodiscard]] bool in_use() const { return !objects_.empty(); }
  [[nodiscard]] Transport& transport() const { return fabric_.get().transport(); }
  [[nodiscard]] const WaitDescriptor& descriptor() const { return descriptor_; }

 private:
  Use<Fabric> fabric_;
  WaitDescriptor descriptor_;
  std::vector<::fid*> objects_;
};

// An object's place in the wait set of its attributes, which may be none.
class WaitMembership {
 public:
  WaitMembership(fi_wait_obj wait, fid_wait* set, ::fid& object)
      : set_(wait == FI_WAIT_SET ? static_cast<WaitSet*>(set) : nullptr), object_(object) {
    if (set_ != nullptr) set_->add(object_);
  }
  ~WaitMembership() {
    if (set_ != nullptr) set_->remove(object_);
  }
  WaitMembership(const WaitMembership&) = delete;
  WaitMembership& operator=(const WaitMembership&) = delete;

 private:
  WaitSet* set_;
  ::fid& object_;
};

int open_poll_set(fid_domain* domain, fi_poll_attr* attributes, fid_poll** set);
int open_wait_set(fid_fabric* fabric, fi_wait_attr* attributes, fid_wait** set);
int try_wait(fid_fabric* fabric, fid** objects, int count);

}  // namespace apenet::libfabric
