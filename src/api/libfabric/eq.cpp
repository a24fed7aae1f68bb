#include "api/libfabric/eq.hpp"

#include <poll.h>
#include <rdma/fi_errno.h>

#include <cstring>

#include "api/libfabric/cq.hpp"
#include "api/libfabric/domain.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {
namespace {

EventQueue& queue_of(fid_eq* eq) {
  return *static_cast<EventQueue*>(eq);
}

ssize_t read(fid_eq* eq, std::uint32_t* event, void* entry, std::size_t room, std::uint64_t flags) {
  return enter([&] { return queue_of(eq).read(event, entry, room, flags); });
}

ssize_t read_error(fid_eq* eq, fi_eq_err_entry* entry, std::uint64_t flags) {
  return enter([&] { return queue_of(eq).read_error(*entry, flags); });
}

ssize_t write(fid_eq* eq, std::uint32_t event, const void* entry, std::size_t bytes,
              std::uint64_t /*flags*/) {
  return enter([&]() -> ssize_t {
    if (!queue_of(eq).takes_writes())
      throw FabricError(FI_EINVAL, "fi_eq_write: expected an event queue opened with FI_WRITE");
    queue_of(eq).push(event, entry, bytes);
    return static_cast<ssize_t>(bytes);
  });
}

// Before virtual time has begun there is none to wait in: the host's passes.
void wait_in_host(const EventQueue& eq, int timeout_ms) {
  constexpr int step_ms = 1;
  for (int waited_ms = 0; eq.empty() && (timeout_ms < 0 || waited_ms < timeout_ms); waited_ms += step_ms) {
    poll(nullptr, 0, step_ms);
  }
}

ssize_t wait_and_read(fid_eq* eq, std::uint32_t* event, void* entry, std::size_t room, int timeout_ms,
                      std::uint64_t flags) {
  EventQueue& queue = queue_of(eq);
  Transport& transport = queue.transport();
  if (!transport.client().started()) {
    wait_in_host(queue, timeout_ms);
  } else {
    const int failed = enter(transport.client(), [&] {
      transport.progress_until(timeout_ms, [&queue] { return !queue.empty(); });
    });
    if (failed != 0) return failed;
  }
  return read(eq, event, entry, room, flags);
}

constexpr fi_ops eq_object_ops = object_ops(close_object<EventQueue>, unsupported, get_wait<EventQueue>);
constexpr fi_ops_eq eq_ops = {
    .size = sizeof(fi_ops_eq),
    .read = read,
    .readerr = read_error,
    .write = write,
    .sread = wait_and_read,
    .strerror = error_text<fid_eq>,
};

}  // namespace

EventQueue::EventQueue(Fabric& fabric, const fi_eq_attr& attributes, void* user_context)
    : fid_eq{},
      fabric_(fabric),
      descriptor_(attributes.wait_obj == FI_WAIT_FD),
      takes_writes_((attributes.flags & FI_WRITE) != 0),
      membership_(attributes.wait_obj, attributes.wait_set, fid) {
  fid.fclass = FI_CLASS_EQ;
  fid.context = user_context;
  fid.ops = table(eq_object_ops);
  ops = table(eq_ops);
}

void EventQueue::append(QueuedEvent entry) {
  const std::lock_guard<std::mutex> guard(mutex_);
  entries_.push_back(std::move(entry));
  descriptor_.raise();
}

void EventQueue::push(std::uint32_t event, const void* entry, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(entry);
  append({.event = event, .is_error = false, .bytes = {from, from + bytes}});
}

void EventQueue::push_done(std::uint32_t event, ::fid& object, void* context, std::uint64_t count) {
  const fi_eq_entry entry{&object, context, count};
  push(event, &entry, sizeof(entry));
}

void EventQueue::push_error(const fi_eq_err_entry& error) {
  const auto* from = reinterpret_cast<const std::byte*>(&error);
  append({.event = 0, .is_error = true, .bytes = {from, from + sizeof(error)}});
}

bool EventQueue::empty() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return entries_.empty();
}

ssize_t EventQueue::read(std::uint32_t* event, void* entry, std::size_t room, std::uint64_t flags) {
  return take(false, event, entry, room, flags);
}

ssize_t EventQueue::read_error(fi_eq_err_entry& entry, std::uint64_t flags) {
  return take(true, nullptr, &entry, sizeof(entry), flags);
}

ssize_t EventQueue::take(bool error, std::uint32_t* event, void* entry, std::size_t room,
                         std::uint64_t flags) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (entries_.empty()) return -FI_EAGAIN;
  const QueuedEvent& next = entries_.front();
  if (next.is_error != error) return error ? -FI_EAGAIN : -FI_EAVAIL;
  if (room < next.bytes.size()) return -FI_ETOOSMALL;
  if (event != nullptr) *event = next.event;
  if (!next.bytes.empty()) std::memcpy(entry, next.bytes.data(), next.bytes.size());
  const auto bytes = static_cast<ssize_t>(next.bytes.size());
  if ((flags & FI_PEEK) != 0) return bytes;
  entries_.pop_front();
  if (entries_.empty()) descriptor_.lower();
  return bytes;
}

int open_eq(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** eq, void* context) {
  Fabric& owner = *static_cast<Fabric*>(fabric);
  return enter(owner.transport().client(), [&] {
    const fi_eq_attr wanted = attributes != nullptr ? *attributes : fi_eq_attr{};
    check_wait_object("fi_eq_open", wanted.wait_obj, wanted.wait_set);
    *eq = new EventQueue(owner, wanted, context);
  });
}

}  // namespace apenet::libfabric
