#include "api/libfabric/shared_contexts.hpp"

#include <rdma/fi_errno.h>

#include "api/libfabric/guard.hpp"
#include "api/libfabric/transport.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {
namespace {

// Messages are addressed to the endpoints.
constexpr std::uint16_t no_number = 0xffff;

// Receives can be posted from the start.
int control_shared(fid* /*object*/, int command, void* /*argument*/) {
  return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

constexpr fi_ops shared_transmit_object_ops = object_ops(close_object<SharedTransmit>);
constexpr fi_ops shared_receive_object_ops =
    object_ops(close_object<SharedReceive>, unsupported, control_shared);
constexpr fi_ops_ep shared_receive_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = unsupported,  // no completion queue would tell of it
    .getopt = get_option,
    .setopt = set_option,
    .tx_ctx = unsupported,
    .rx_ctx = unsupported,
    .rx_size_left = unsupported,
    .tx_size_left = unsupported,
};

}  // namespace

SharedTransmit::SharedTransmit(Domain& domain, void* user_context) : fid_stx{}, domain_(domain) {
  fid.fclass = FI_CLASS_STX_CTX;
  fid.context = user_context;
  fid.ops = table(shared_transmit_object_ops);
}

SharedReceive::SharedReceive(Domain& domain, const fi_rx_attr* attributes, void* user_context)
    : Receiver(domain, no_number, attributes != nullptr ? attributes->op_flags : 0) {
  if (attributes != nullptr && (attributes->caps & FI_DIRECTED_RECV) != 0)
    throw FabricError(FI_ENOSYS, "fi_srx_context: caps: FI_DIRECTED_RECV");
  fid.fclass = FI_CLASS_SRX_CTX;
  fid.context = user_context;
  fid.ops = table(shared_receive_object_ops);
  ops = table(shared_receive_ops);
  msg = table(shared_message_ops);
  tagged = table(shared_tagged_ops);
}

// NOLINTNEXTLINE(bugprone-exception-escape): the process ends if it cannot tell a sender
SharedReceive::~SharedReceive() {
  engine().forget(*this);
}

int open_shared_transmit(fid_domain* domain, fi_tx_attr* /*attributes*/, fid_stx** context,
                         void* user_context) {
  Domain& owner = domain_of(domain);
  return enter(owner.transport().client(), [&] { *context = new SharedTransmit(owner, user_context); });
}

int open_shared_receive(fid_domain* domain, fi_rx_attr* attributes, fid_ep** context, void* user_context) {
  Domain& owner = domain_of(domain);
  return enter(owner.transport().client(),
               [&] { *context = new SharedReceive(owner, attributes, user_context); });
}

}  // namespace apenet::libfabric
