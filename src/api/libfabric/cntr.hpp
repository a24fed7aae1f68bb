// Counter: how many operations have completed, for programs that need no more than that.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <atomic>
#include <cstdint>

#include "api/libfabric/objects.hpp"
#include "api/libfabric/wait_descriptor.hpp"
#include "api/libfabric/waiting.hpp"

namespace apenet::libfabric {

class Domain;
class Transport;

class Counter : public fid_cntr, public Usable {
 public:
  using Handle = fid_cntr;

  Counter(Domain& domain, const fi_cntr_attr& attributes, void* user_context);

  void count() { set_value(value() + 1); }
  void count_error() { set_errors(errors() + 1); }
  // Makes progress before the counter is read.
  void make_progress();
  // As fi_cntr_wait; the timeout is virtual time.
  int wait(std::uint64_t threshold, int timeout_ms);

  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }
  void set_value(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  void set_errors(std::uint64_t errors) { errors_.store(errors, std::memory_order_relaxed); }

  // It has changed since the program last read it.
  [[nodiscard]] bool has_news() const { return value() != seen_value_ || errors() != seen_errors_; }
  void seen() {
    seen_value_ = value();
    seen_errors_ = errors();
  }
  [[nodiscard]] const WaitDescriptor& descriptor() const { return descriptor_; }

  void count_arrivals() { counts_arrivals_ = true; }
  [[nodiscard]] Transport& transport() const { return transport_; }

 private:
  Use<Domain> domain_;
  Transport& transport_;
  // Changed with the lock held, read without it.
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> errors_{0};
  std::uint64_t seen_value_ = 0;
  std::uint64_t seen_errors_ = 0;
  bool counts_arrivals_ = false;  // or sends, which end when the peer likes
  WaitDescriptor descriptor_;
  WaitMembership membership_;
};

// Counts an access by others, of the kinds FI_REMOTE_WRITE, FI_REMOTE_READ or both: once for each counter.
void count_access(std::uint64_t kinds, Counter* writes, Counter* reads);

int open_counter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context);

}  // namespace apenet::libfabric
