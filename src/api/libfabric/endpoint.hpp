// Endpoint: a reliable datagram endpoint: what is bound to it, its matching queues, and how its completions
// are reported.
#pragma once

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "api/libfabric/av.hpp"
#include "api/libfabric/cntr.hpp"
#include "api/libfabric/cq.hpp"
#include "api/libfabric/receiver.hpp"

namespace apenet::libfabric {

class EventQueue;
class SharedReceive;
class SharedTransmit;

class Endpoint : public Receiver {
 public:
  Endpoint(Domain& domain, const fi_info& info, void* user_context);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  void bind(::fid& object, std::uint64_t flags);
  void enable();
  [[nodiscard]] EndpointName name() const;

  [[nodiscard]] CompletionQueue* receive_cq() const { return receive_cq_; }
  [[nodiscard]] CompletionQueue* transmit_cq() const { return transmit_cq_; }
  // The calling thread has posted a receive for the acknowledgement of its next send.
  void note_acknowledgement(const void* context) { acknowledgements_.emplace_back(pthread_self(), context); }
  // Its context; nullptr: there is none.
  [[nodiscard]] const void* take_acknowledgement();
  std::uint64_t& transmit_flags() { return transmit_flags_; }

  // Throws FabricError when the address is not in the bound vector, and when it is that of an endpoint at
  // another rail, to which no link leads.
  [[nodiscard]] const EndpointName& resolve(fi_addr_t address) const;
  // Which sources a receive takes: everybody, unless the program asked for directed receives.
  [[nodiscard]] Wanted wanted(fi_addr_t source, std::uint64_t tag, std::uint64_t ignore) const;
  [[nodiscard]] fi_addr_t address_of(const message::Message& message) const {
    return reports_source_ ? av_->address_of(message.source, message.header.source_endpoint)
                           : FI_ADDR_NOTAVAIL;
  }

  // Whether an operation with these flags writes a completion.
  [[nodiscard]] bool transmit_reports(std::uint64_t flags) const {
    return !transmit_selective_ || (flags & FI_COMPLETION) != 0;
  }
  [[nodiscard]] bool receive_reports(bool asked) const { return !receive_selective_ || asked; }
  // Tells the program that an operation has ended; entry.flags says of what kind it was.
  void transmitted(const CompletionEntry& entry, bool reports) { tell(transmit_cq_, entry, reports); }
  void received(const CompletionEntry& entry, bool reports) { tell(receive_cq_, entry, reports); }
  // Others have accessed memory of the domain through this endpoint (FI_REMOTE_WRITE, FI_REMOTE_READ); have
  // sent data with an access.
  void accessed(std::uint64_t flags, std::uint64_t key);
  void received_data(std::uint64_t flags, std::size_t bytes, std::uint64_t data);
  // FI_RMA_EVENT: the targets of this endpoint's accesses are notified.
  [[nodiscard]] bool tells_targets() const { return tells_targets_; }

 private:
  [[nodiscard]] Counter* counter_of(std::uint64_t flags) const;
  void tell(CompletionQueue* cq, const CompletionEntry& entry, bool reports) const;
  void bind_cq(CompletionQueue& cq, std::uint64_t flags);
  void bind_shared(SharedTransmit& context);
  void bind_shared(SharedReceive& context);
  void check_domain(const Domain& of) const;
  void bind_counter(Counter& counter, std::uint64_t flags);

  bool enabled_ = false;
  bool directed_ = false;
  bool reports_source_ = false;
  bool tells_targets_ = false;
  bool transmit_selective_ = false;
  bool receive_selective_ = false;
  std::uint64_t transmit_flags_;
  bool shares_transmit_ = false;  // expects a context to be bound, as the next
  bool shares_receive_ = false;
  SharedTransmit* shared_transmit_ = nullptr;
  SharedReceive* shared_receive_ = nullptr;
  AddressVector* av_ = nullptr;
  EventQueue* eq_ = nullptr;
  CompletionQueue* transmit_cq_ = nullptr;
  // For sends that threads are about to post.
  std::vector<std::pair<pthread_t, const void*>> acknowledgements_;
  CompletionQueue* receive_cq_ = nullptr;
  Counter* send_counter_ = nullptr;
  Counter* receive_counter_ = nullptr;
  Counter* write_counter_ = nullptr;
  Counter* read_counter_ = nullptr;
  Counter* remote_write_counter_ = nullptr;
  Counter* remote_read_counter_ = nullptr;
};

[[nodiscard]] inline Endpoint& endpoint_of(fid_ep* ep) {
  return *static_cast<Endpoint*>(ep);
}
[[nodiscard]] inline ipc::Client& client_of(fid_ep* ep) {
  return endpoint_of(ep).transport().client();
}

// A buffer from the program's pieces, which knows those in the GPU's memory by their addresses. That of a
// real GPU is replaced by its stand-in (RealGpus). Throws FabricError when there are more than segment_limit.
[[nodiscard]] Buffer make_buffer(const Receiver& receiver, const iovec* pieces, std::size_t count);
[[nodiscard]] Buffer make_buffer(const Receiver& receiver, const void* start, std::size_t length);

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context);

// The tables of the calls, one file each.
extern const fi_ops_tagged tagged_ops;
extern const fi_ops_msg message_ops;
extern const fi_ops_rma rma_ops;

}  // namespace apenet::libfabric
