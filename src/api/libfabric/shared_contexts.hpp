// Contexts that the endpoints of a domain share (FI_SHARED_CONTEXT).
#pragma once

#include <rdma/fi_endpoint.h>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/receiver.hpp"

namespace apenet::libfabric {

// fi_stx_context. All endpoints of a process send by the same card: there is nothing left to share.
class SharedTransmit : public fid_stx, public Usable {
 public:
  using Handle = fid_stx;
  SharedTransmit(Domain& domain, void* user_context);
  [[nodiscard]] Domain& domain() const { return domain_.get(); }
  [[nodiscard]] Transport& transport() const { return domain().transport(); }

 private:
  Use<Domain> domain_;
};

// fi_srx_context. The messages for all its endpoints match its receives, whose completions go to the queue of
// the endpoint to which the message was sent. Receives are from any source.
class SharedReceive : public Receiver, public Usable {
 public:
  SharedReceive(Domain& domain, const fi_rx_attr* attributes, void* user_context);
  ~SharedReceive();
  SharedReceive(const SharedReceive&) = delete;
  SharedReceive& operator=(const SharedReceive&) = delete;
};

int open_shared_transmit(fid_domain* domain, fi_tx_attr* attributes, fid_stx** context, void* user_context);
int open_shared_receive(fid_domain* domain, fi_rx_attr* attributes, fid_ep** context, void* user_context);

}  // namespace apenet::libfabric
