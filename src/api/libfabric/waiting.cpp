#include "api/libfabric/waiting.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "api/libfabric/cntr.hpp"
#include "api/libfabric/cq.hpp"
#include "api/libfabric/domain.hpp"
#include "api/libfabric/eq.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {
namespace {

PollSet& poll_set_of(fid_poll* set) {
  return *static_cast<PollSet*>(set);
}
WaitSet& wait_set_of(fid_wait* set) {
  return *static_cast<WaitSet*>(set);
}

int poll(fid_poll* set, void** contexts, int count) {
  return enter(poll_set_of(set).transport().client(), [&] { return poll_set_of(set).poll(contexts, count); });
}

int add(fid_poll* set, fid* object, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  return enter(poll_set_of(set).transport().client(), [&] { poll_set_of(set).add(*object); });
}

int remove(fid_poll* set, fid* object, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  return enter(poll_set_of(set).transport().client(), [&] { poll_set_of(set).remove(*object); });
}

int wait(fid_wait* set, int timeout_ms) {
  return enter(wait_set_of(set).transport().client(), [&] { return wait_set_of(set).wait(timeout_ms); });
}

constexpr fi_ops poll_object_ops = object_ops(close_object<PollSet>);
constexpr fi_ops_poll poll_ops = {
    .size = sizeof(fi_ops_poll), .poll = poll, .poll_add = add, .poll_del = remove};
constexpr fi_ops wait_object_ops = object_ops(close_object<WaitSet>, unsupported, get_wait<WaitSet>);
constexpr fi_ops_wait wait_ops = {.size = sizeof(fi_ops_wait), .wait = wait};

void erase(std::vector<fid*>& objects, fid& object) {
  objects.erase(std::remove(objects.begin(), objects.end(), &object), objects.end());
}

}  // namespace

bool has_news(const fid& object) {
  switch (object.fclass) {
    case FI_CLASS_CQ:
      return !static_cast<const CompletionQueue*>(reinterpret_cast<const fid_cq*>(&object))->empty();
    case FI_CLASS_EQ:
      return !static_cast<const EventQueue*>(reinterpret_cast<const fid_eq*>(&object))->empty();
    case FI_CLASS_CNTR:
      return static_cast<const Counter*>(reinterpret_cast<const fid_cntr*>(&object))->has_news();
    default:
      return false;
  }
}

void check_wait_object(const char* call, fi_wait_obj asked, const fid_wait* wait_set) {
  const bool in_set = asked == FI_WAIT_SET && wait_set != nullptr;
  if (in_set || asked == FI_WAIT_NONE || asked == FI_WAIT_UNSPEC || asked == FI_WAIT_YIELD ||
      asked == FI_WAIT_FD) {
    return;
  }
  throw FabricError(FI_ENOSYS, std::string(call) +
                                   ": wait_obj: expected FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD, "
                                   "FI_WAIT_FD, or FI_WAIT_SET with a set");
}

PollSet::PollSet(Domain& domain) : fid_poll{}, domain_(domain) {
  fid.fclass = FI_CLASS_POLL;
  fid.ops = table(poll_object_ops);
  ops = table(poll_ops);
}

void PollSet::add(::fid& object) {
  if (object.fclass != FI_CLASS_CQ && object.fclass != FI_CLASS_CNTR)
    throw FabricError(FI_EINVAL, "fi_poll_add: expected a completion queue or a counter");
  if (std::find(objects_.begin(), objects_.end(), &object) == objects_.end()) objects_.push_back(&object);
}

void PollSet::remove(::fid& object) {
  erase(objects_, object);
}

int PollSet::find_news(void** contexts, int count) const {
  int found = 0;
  for (const ::fid* object : objects_) {
    if (found < count && has_news(*object)) contexts[found++] = object->context;
  }
  return found;
}

int PollSet::poll(void** contexts, int count) {
  const int found = find_news(contexts, count);
  if (found > 0 || !transport().progress()) return found;
  return find_news(contexts, count);
}

WaitSet::WaitSet(Fabric& fabric, bool with_descriptor)
    : fid_wait{}, fabric_(fabric), descriptor_(with_descriptor) {
  descriptor_.raise();
  fid.fclass = FI_CLASS_WAIT;
  fid.ops = table(wait_object_ops);
  ops = table(wait_ops);
}

void WaitSet::remove(::fid& object) {
  erase(objects_, object);
}

int WaitSet::wait(int timeout_ms) {
  const bool done = transport().progress_until(timeout_ms, [this] {
    return std::any_of(objects_.begin(), objects_.end(),
                       [](const ::fid* object) { return has_news(*object); });
  });
  return done ? 0 : -FI_ETIMEDOUT;
}

int open_poll_set(fid_domain* domain, fi_poll_attr* attributes, fid_poll** set) {
  Domain& owner = domain_of(domain);
  return enter(owner.transport().client(), [&]() -> int {
    if (attributes != nullptr && attributes->flags != 0) return -FI_EBADFLAGS;
    *set = new PollSet(owner);
    return 0;
  });
}

int open_wait_set(fid_fabric* fabric, fi_wait_attr* attributes, fid_wait** set) {
  Fabric& owner = *static_cast<Fabric*>(fabric);
  return enter(owner.transport().client(), [&]() -> int {
    const fi_wait_obj wanted = attributes != nullptr ? attributes->wait_obj : FI_WAIT_UNSPEC;
    if (attributes != nullptr && attributes->flags != 0) return -FI_EBADFLAGS;
    check_wait_object("fi_wait_open", wanted, nullptr);
    *set = new WaitSet(owner, wanted == FI_WAIT_FD);
    return 0;
  });
}

// The descriptors of completion queues and counters are always readable, so a program may always try to wait:
// it then polls again, and the polls decide whether they are a wait.
int try_wait(fid_fabric* /*fabric*/, fid** objects, int count) {
  return enter([&]() -> int {
    for (int i = 0; i < count; ++i) {
      if (has_news(*objects[i])) return -FI_EAGAIN;
    }
    return 0;
  });
}

}  // namespace apenet::libfabric
