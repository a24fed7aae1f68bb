#include "api/libfabric/cq.hpp"

#include <rdma/fi_errno.h>

#include <cstring>
#include <utility>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/transport.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {

namespace {

constexpr std::size_t initial_entries = 256;

CompletionQueue& cq_of(fid_cq* cq) {
  return *static_cast<CompletionQueue*>(cq);
}
ipc::Client& client_of_queue(fid_cq* cq) {
  return cq_of(cq).transport().client();
}

ssize_t read(fid_cq* cq, void* entries, std::size_t count) {
  const CompletionQueue::Reader reader(cq_of(cq));
  return enter(client_of_queue(cq), [&] { return cq_of(cq).read(entries, count, nullptr); });
}

ssize_t read_from(fid_cq* cq, void* entries, std::size_t count, fi_addr_t* sources) {
  const CompletionQueue::Reader reader(cq_of(cq));
  return enter(client_of_queue(cq), [&] { return cq_of(cq).read(entries, count, sources); });
}

ssize_t read_error(fid_cq* cq, fi_cq_err_entry* entry, std::uint64_t /*flags*/) {
  return enter(client_of_queue(cq), [&] { return cq_of(cq).read_error(*entry); });
}

ssize_t wait_read(fid_cq* cq, void* entries, std::size_t count, const void* /*condition*/, int timeout_ms) {
  return enter(client_of_queue(cq),
               [&] { return cq_of(cq).wait_and_read(entries, count, nullptr, timeout_ms); });
}

ssize_t wait_read_from(fid_cq* cq, void* entries, std::size_t count, fi_addr_t* sources,
                       const void* /*condition*/, int timeout_ms) {
  return enter(client_of_queue(cq),
               [&] { return cq_of(cq).wait_and_read(entries, count, sources, timeout_ms); });
}

// Without the lock: its purpose is to wake a thread that holds it.
int signal_cq(fid_cq* cq) {
  cq_of(cq).signal();
  return 0;
}

constexpr fi_ops cq_object_ops =
    object_ops(close_object<CompletionQueue>, unsupported, get_wait<CompletionQueue>);
constexpr fi_ops_cq cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = read,
    .readfrom = read_from,
    .readerr = read_error,
    .sread = wait_read,
    .sreadfrom = wait_read_from,
    .signal = signal_cq,
    .strerror = error_text<fid_cq>,
};

std::size_t entry_bytes(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
      return sizeof(fi_cq_tagged_entry);
    default:
      return sizeof(fi_cq_entry);
  }
}

}  // namespace

const char* describe(ErrorDetail detail) {
  switch (detail) {
    case ErrorDetail::none:
      return "no error";
    case ErrorDetail::truncated:
      return "the message is longer than the buffer of its receive";
    case ErrorDetail::cancelled:
      return "the receive was cancelled";
    case ErrorDetail::no_message:
      return "no message matches";
    case ErrorDetail::bad_address:
      return "the address is not in the memory of the process that was accessed";
    case ErrorDetail::malformed:
      return "a message that is not the provider's, or of another version of it";
    case ErrorDetail::no_endpoint:
      return "the address is not that of an endpoint of this simulation";
    case ErrorDetail::unknown_key:
      return "the target has no memory region with this key";
    case ErrorDetail::out_of_bounds:
      return "the access does not lie within the memory region of its key";
    case ErrorDetail::not_allowed:
      return "the memory region was not registered for such an access";
    case ErrorDetail::not_at_device:
      return "the CUDA driver did not copy the data to its device";
  }
  return "unknown error";
}

void CompletionEntry::fail(ipc::AccessFault fault) {
  const auto set = [this](int number, ErrorDetail why) {
    error = number;
    detail = static_cast<int>(why);
  };
  switch (fault) {
    case ipc::AccessFault::none:
      return;
    case ipc::AccessFault::bad_address:
      return set(FI_EFAULT, ErrorDetail::bad_address);
    case ipc::AccessFault::unknown_key:
      return set(FI_EKEYREJECTED, ErrorDetail::unknown_key);
    case ipc::AccessFault::out_of_bounds:
      return set(FI_EACCES, ErrorDetail::out_of_bounds);
    case ipc::AccessFault::not_allowed:
      return set(FI_EACCES, ErrorDetail::not_allowed);
  }
}

void CompletionEntry::fail_at_device() {
  error = FI_EIO;
  detail = static_cast<int>(ErrorDetail::not_at_device);
}

CompletionQueue::CompletionQueue(Domain& domain, const fi_cq_attr& attributes, void* user_context)
    : fid_cq{},
      domain_(domain),
      transport_(domain.transport()),
      format_(attributes.format),
      ring_(initial_entries),
      polls_once_(transport_.polls_once()),
      own_rail_(static_cast<std::uint8_t>(1U << domain.rail())),
      other_rails_(static_cast<std::uint8_t>((1U << transport_.rail_count()) - 1U - own_rail_)),
      descriptor_(attributes.wait_obj == FI_WAIT_FD),
      membership_(attributes.wait_obj, attributes.wait_set, fid) {
  descriptor_.raise();
  if (format_ == FI_CQ_FORMAT_UNSPEC) format_ = FI_CQ_FORMAT_CONTEXT;
  fid.fclass = FI_CLASS_CQ;
  fid.context = user_context;
  fid.ops = table(cq_object_ops);
  ops = table(cq_ops);
}

void CompletionQueue::grow() {
  std::vector<CompletionEntry> larger(ring_.size() * 2);
  for (std::size_t i = tail_; i != head_; ++i)
    larger[i & (larger.size() - 1)] = ring_[i & (ring_.size() - 1)];
  ring_.swap(larger);
}

ssize_t CompletionQueue::read(void* entries, std::size_t count, fi_addr_t* sources) {
  // One step only where it may wait: what it brought may be what the program waits for without being a
  // completion (an unexpected message, for MPI_Probe).
  if (empty() && std::exchange(gave_last_, false) && transport_.client().progress().waits())
    return -FI_EAGAIN;
  while (empty() && (may_wait() ? transport_.progress() : transport_.progress_visible()) &&
         !transport_.client().progress().waits()) {
  }
  return take(entries, count, sources);
}

// A program polls the queues of several rails in turn. After one of them has got or given an entry, the
// program has to check its result: the next poll of each other rail does not wait for an event.
bool CompletionQueue::may_wait() {
  const bool may = (polls_once_ & own_rail_) == 0 || !transport_.client().progress().waits();
  polls_once_ &= static_cast<std::uint8_t>(~own_rail_);
  return may;
}

ssize_t CompletionQueue::wait_and_read(void* entries, std::size_t count, fi_addr_t* sources, int timeout_ms) {
  transport_.progress_until(timeout_ms, [this] { return !empty() || signalled_; });
  signalled_ = false;
  return take(entries, count, sources);
}

ssize_t CompletionQueue::take(void* entries, std::size_t count, fi_addr_t* sources) {
  if (empty()) return -FI_EAGAIN;
  const std::size_t bytes = entry_bytes(format_);
  auto* to = static_cast<std::byte*>(entries);
  std::size_t taken = 0;
  for (; taken < count && tail_ != head_; ++taken, ++tail_, to += bytes) {
    const CompletionEntry& from = ring_[tail_ & (ring_.size() - 1)];
    if (from.error != 0) break;
    // The formats are prefixes of each other.
    const fi_cq_tagged_entry entry{from.context, from.flags, from.length, from.buffer, from.data, from.tag};
    std::memcpy(to, &entry, bytes);
    if (sources != nullptr) sources[taken] = from.source;
    if (awaited_ != nullptr) note_taken(from.context);
    transport_.note_end(from.recorded);
  }
  gave_last_ = true;
  if (taken == 0 && count > 0) return -FI_EAVAIL;
  polls_once_ |= other_rails_;
  return static_cast<ssize_t>(taken);
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry& entry) {
  if (empty()) return -FI_EAGAIN;
  const CompletionEntry& from = ring_[tail_ & (ring_.size() - 1)];
  if (from.error == 0) return -FI_EAGAIN;
  entry.op_context = from.context;
  entry.flags = from.flags;
  entry.len = from.length;
  entry.buf = from.buffer;
  entry.data = from.data;
  entry.tag = from.tag;
  entry.olen = from.missing;
  entry.err = from.error;
  entry.prov_errno = from.detail;
  entry.err_data_size = 0;
  transport_.note_end(from.recorded);
  if (awaited_ != nullptr) note_taken(from.context);
  ++tail_;
  return 1;
}

void CompletionQueue::note_taken(const void* context) {
  for (AwaitedCompletion* one = awaited_; one != nullptr; one = one->next) {
    if (one->context == context) one->is_taken = true;
  }
}

void CompletionQueue::begin_to_await(AwaitedCompletion& awaited) {
  awaited.next = std::exchange(awaited_, &awaited);
}

bool CompletionQueue::await(const AwaitedCompletion& awaited) {
  if (awaited.is_taken) return true;
  if (empty()) {
    transport_.progress();
    return false;
  }
  if (readers_ == 0 && (has(awaited.context) || !has_other_reader())) return true;
  if (ipc::OrderedThread* const own = transport_.client().ordered()) ipc::ThreadOrder::yield(*own);
  return false;
}

bool CompletionQueue::has(const void* context) const {
  for (std::size_t i = tail_; i != head_; ++i) {
    if (ring_[i & (ring_.size() - 1)].context == context) return true;
  }
  return false;
}

// Whether another thread is in a call of the library that will read the queue, because it does not wait here.
bool CompletionQueue::has_other_reader() const {
  std::uint32_t waiting = 0;
  for (const AwaitedCompletion* one = awaited_; one != nullptr; one = one->next) ++waiting;
  return transport_.client().order()->count_in_calls() > waiting;
}

void CompletionQueue::end_to_await(const AwaitedCompletion& awaited) {
  AwaitedCompletion** link = &awaited_;
  while (*link != &awaited) link = &(*link)->next;
  *link = awaited.next;
}

CompletionQueue::Reader::Reader(CompletionQueue& queue)
    : queue_(queue), counts_(queue.transport().client().has_threads()) {
  if (counts_) ++queue_.readers_;
}

int open_cq(fid_domain* domain, fi_cq_attr* attributes, fid_cq** cq, void* context) {
  Domain& owner = domain_of(domain);
  return enter(owner.transport().client(), [&]() -> int {
    const fi_cq_attr wanted = attributes != nullptr ? *attributes : fi_cq_attr{};
    if (wanted.format > FI_CQ_FORMAT_TAGGED) return -FI_EINVAL;
    check_wait_object("fi_cq_open", wanted.wait_obj, wanted.wait_set);
    *cq = new CompletionQueue(owner, wanted, context);
    return 0;
  });
}

}  // namespace apenet::libfabric
