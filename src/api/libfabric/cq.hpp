// CompletionQueue: the reports about the program's operations, in order.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "api/libfabric/objects.hpp"
#include "api/libfabric/wait_descriptor.hpp"
#include "api/libfabric/waiting.hpp"
#include "runtime/ipc/regions.hpp"

namespace apenet::libfabric {

class Domain;
class Transport;

struct CompletionEntry {
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::size_t length = 0;
  void* buffer = nullptr;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  std::size_t missing = 0;     // bytes that did not fit (FI_ETRUNC)
  int error = 0;               // FI_E..., 0: success
  int detail = 0;              // ErrorDetail
  std::uint32_t recorded = 0;  // Recorder's number of the operation, which ends when this is read; 0: of none

  // Success, or why a remote access was none.
  void fail(ipc::AccessFault fault);
  // What has come is not in the memory of a real GPU.
  void fail_at_device();
};

// Why an operation failed, beside its error number.
enum class ErrorDetail : int {
  none,
  truncated,
  cancelled,
  no_message,
  bad_address,
  malformed,
  no_endpoint,
  unknown_key,
  out_of_bounds,
  not_allowed,
  not_at_device
};
const char* describe(ErrorDetail detail);
// fi_cq_strerror and fi_eq_strerror.
template <typename Queue>
const char* error_text(Queue* /*queue*/, int detail, const void* /*data*/, char* text, std::size_t length) {
  const char* words = describe(static_cast<ErrorDetail>(detail));
  if (text == nullptr || length == 0) return words;
  std::snprintf(text, length, "%s", words);
  return text;
}

// A completion for which a thread waits without a lock of its library's. In a list of the queue.
struct AwaitedCompletion {
  const void* context = nullptr;
  bool is_taken = false;  // a thread has read it
  AwaitedCompletion* next = nullptr;
};

class CompletionQueue : public fid_cq, public Usable {
 public:
  using Handle = fid_cq;

  CompletionQueue(Domain& domain, const fi_cq_attr& attributes, void* user_context);

  void push(const CompletionEntry& entry) {
    if (head_ - tail_ == ring_.size()) grow();
    ring_[head_++ & (ring_.size() - 1)] = entry;
    polls_once_ |= other_rails_;
  }
  [[nodiscard]] bool empty() const { return head_ == tail_; }

  // As fi_cq_readfrom: makes progress when nothing is there.
  ssize_t read(void* entries, std::size_t count, fi_addr_t* sources);
  // As fi_cq_sreadfrom; the timeout is virtual time.
  ssize_t wait_and_read(void* entries, std::size_t count, fi_addr_t* sources, int timeout_ms);
  ssize_t read_error(fi_cq_err_entry& entry);
  void begin_to_await(AwaitedCompletion& awaited);
  // Makes progress if nothing is there. Returns whether the thread can go on: the completion has been read.
  // Or it is there and no thread is in a read, which might hold a lock that this thread would need to read
  // it. Or something else is there, on which others may depend, and no other thread will read it.
  bool await(const AwaitedCompletion& awaited);
  void end_to_await(const AwaitedCompletion& awaited);
  // One of several threads is in fi_cq_read or fi_cq_readfrom.
  class Reader {
   public:
    explicit Reader(CompletionQueue& queue);
    ~Reader() {
      if (counts_) --queue_.readers_;
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    CompletionQueue& queue_;
    bool counts_;
  };
  void signal() { signalled_ = true; }

  [[nodiscard]] Transport& transport() const { return transport_; }
  [[nodiscard]] const WaitDescriptor& descriptor() const { return descriptor_; }

 private:
  [[nodiscard]] bool may_wait();
  ssize_t take(void* entries, std::size_t count, fi_addr_t* sources);
  void grow();
  void note_taken(const void* context);
  [[nodiscard]] bool has(const void* context) const;
  [[nodiscard]] bool has_other_reader() const;

  Use<Domain> domain_;
  Transport& transport_;
  fi_cq_format format_;
  std::vector<CompletionEntry> ring_;  // size: a power of two
  std::size_t head_ = 0;               // free-running
  std::size_t tail_ = 0;
  std::uint8_t& polls_once_;  // Transport::polls_once
  std::uint8_t own_rail_;     // a bit
  std::uint8_t other_rails_;  // the bits of the other rails of the node
  // The last read gave entries. A library may read until there are none before it checks what it waits for:
  // the next read does not wait for an event.
  bool gave_last_ = false;
  WaitDescriptor descriptor_;
  WaitMembership membership_;
  AwaitedCompletion* awaited_ = nullptr;
  std::atomic<std::uint32_t> readers_{0};
  std::atomic<bool> signalled_ = false;  // set by other threads, without the lock
};

int open_cq(fid_domain* domain, fi_cq_attr* attributes, fid_cq** cq, void* context);

}  // namespace apenet::libfabric
