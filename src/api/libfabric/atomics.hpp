// Atomics: the part of the transport that changes the memory of others element by element. A request is a
// message, which the target's provider executes when it makes progress and answers with another: so both cost
// what small messages cost, and keep the order of all messages between two processes.
#pragma once

#include <cstdint>
#include <span>

#include "api/libfabric/atomic_ops.hpp"
#include "api/libfabric/messages.hpp"
#include "api/libfabric/wire.hpp"
#include "message/pool.hpp"
#include "runtime/ipc/client.hpp"

namespace apenet::libfabric {

class Endpoint;
class Transport;

inline constexpr std::size_t most_atomic_bytes =
    4096;  // operands of one call, which may take several messages

struct AtomicTarget {
  std::uint64_t address = 0;
  std::uint64_t count = 0;
  std::uint64_t key = 0;
};

// fi_atomic, fi_fetch_atomic, fi_compare_atomic and their variants, with checked arguments.
struct AtomicCall {
  AtomicOperation operation;
  std::span<const std::byte> operands;
  std::span<const std::byte> comparands;
  std::span<const AtomicTarget> remote;
  Buffer results;
  const EndpointName* to = nullptr;
  std::uint32_t data = 0;
  bool has_data = false;
  bool reports = false;
  void* context = nullptr;
};

// An operation until all its answers are there.
struct AtomicTransfer {
  message::Hook<AtomicTransfer> in_order;
  std::uint32_t id = 0;
  std::uint32_t recorded = 0;
  std::uint32_t target = 0;
  std::uint32_t pending = 0;  // answers
  AtomicForm form = AtomicForm::write;
  ipc::AccessFault fault = ipc::AccessFault::none;
  bool reports = false;
  Endpoint* endpoint = nullptr;
  void* context = nullptr;
  Buffer results;

  void reset() {
    endpoint = nullptr;
    fault = ipc::AccessFault::none;
    pending = recorded = 0;
  }
};

class Atomics {
 public:
  Atomics(Transport& transport, ipc::Client& client) : transport_(transport), client_(client) {}

  void post(Endpoint& endpoint, const AtomicCall& call);
  // A request for this endpoint; nullptr: it is gone.
  void execute(Endpoint* endpoint, const message::Message& message);
  void answered(const message::Message& message);
  // The endpoint goes; what is under way ends unreported.
  void forget(Endpoint& endpoint);

  [[nodiscard]] std::uint32_t under_way() const { return under_way_; }
  [[nodiscard]] const AtomicTransfer* oldest() const { return in_order_.front(); }

 private:
  void finish(AtomicTransfer& transfer);

  Transport& transport_;
  ipc::Client& client_;
  message::Pool<AtomicTransfer> transfers_;
  message::List<AtomicTransfer, &AtomicTransfer::in_order> in_order_;
  std::uint32_t under_way_ = 0;  // length of in_order_
};

extern const fi_ops_atomic atomic_ops;
int query_atomic(fid_domain* domain, fi_datatype type, fi_op op, fi_atomic_attr* attributes,
                 std::uint64_t flags);

}  // namespace apenet::libfabric
