#include "api/libfabric/endpoint.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "api/gpu/apenet_gpu.h"
#include "api/libfabric/atomics.hpp"
#include "api/libfabric/domain.hpp"
#include "api/libfabric/eq.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/info.hpp"
#include "api/libfabric/region.hpp"
#include "api/libfabric/shared_contexts.hpp"
#include "api/libfabric/transport.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {
namespace {

int bind_endpoint(fid* object, fid* other, std::uint64_t flags) {
  auto& endpoint = object_of<Endpoint>(object);
  return enter(endpoint.transport().client(), [&] { endpoint.bind(*other, flags); });
}

int control_endpoint(fid* object, int command, void* argument) {
  auto& endpoint = object_of<Endpoint>(object);
  return enter(endpoint.transport().client(), [&]() -> int {
    if (command == FI_ENABLE) {
      endpoint.enable();
      return 0;
    }
    if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG) return -FI_ENOSYS;
    auto& flags = *static_cast<std::uint64_t*>(argument);
    const bool transmit = (flags & FI_TRANSMIT) != 0;
    if (transmit == ((flags & FI_RECV) != 0)) return -FI_EINVAL;
    std::uint64_t& ours = transmit ? endpoint.transmit_flags() : endpoint.receive_flags();
    if (command == FI_SETOPSFLAG) {
      ours = flags & ~(FI_TRANSMIT | FI_RECV);
    } else {
      flags = ours;
    }
    return 0;
  });
}

ssize_t cancel_receive(fid* object, void* context) {
  auto& endpoint = object_of<Endpoint>(object);
  return enter(endpoint.transport().client(),
               [&]() -> ssize_t { return cancel(endpoint, context) ? 0 : -FI_ENOENT; });
}

int get_name(fid* object, void* name, std::size_t* length) {
  const EndpointName ours = object_of<Endpoint>(object).name();
  const std::size_t room = name != nullptr ? *length : 0;
  *length = sizeof(ours);
  if (room > 0) std::memcpy(name, &ours, std::min(room, sizeof(ours)));
  return room < sizeof(ours) ? -FI_ETOOSMALL : 0;
}

constexpr fi_ops endpoint_object_ops = object_ops(close_object<Endpoint>, bind_endpoint, control_endpoint);
constexpr fi_ops_ep endpoint_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel_receive,
    .getopt = get_option,
    .setopt = set_option,
    .tx_ctx = unsupported,
    .rx_ctx = unsupported,
    .rx_size_left = unsupported,
    .tx_size_left = unsupported,
};
constexpr fi_ops_cm name_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = unsupported,
    .getname = get_name,
    .getpeer = unsupported,
    .connect = unsupported,
    .listen = unsupported,
    .accept = unsupported,
    .reject = unsupported,
    .shutdown = unsupported,
    .join = unsupported,
};

template <typename Object>
void attach(Object*& place, Object& object, const char* what) {
  if (place == &object) return;
  if (place != nullptr) throw FabricError(FI_EINVAL, std::string("fi_ep_bind: a second ") + what);
  place = &object;
  object.bound(1);
}

// What fi_getinfo was asked for as the service of the source.
std::uint32_t wanted_number(const fi_info& info) {
  EndpointName name;
  if (info.src_addr == nullptr || info.src_addrlen != sizeof(name)) return EndpointName::any_number;
  std::memcpy(&name, info.src_addr, sizeof(name));
  return name.endpoint;
}

bool is_in_gpu(const Receiver& receiver, Segment& piece) {
  return ape_gpu_is_device(message::memory_at(piece.address)) != 0 ||
         receiver.transport().real_gpus().replace(piece);
}

template <typename... Objects>
void release(Objects*... objects) {
  ((objects != nullptr ? objects->bound(-1) : void()), ...);
}

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* user_context)
    : Receiver(domain, domain.transport().attach(*this, wanted_number(info)),
               info.rx_attr != nullptr ? info.rx_attr->op_flags : 0),
      directed_((info.caps & FI_DIRECTED_RECV) != 0),
      transmit_flags_(info.tx_attr != nullptr ? info.tx_attr->op_flags : 0),
      shares_transmit_(info.ep_attr != nullptr && info.ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT),
      shares_receive_(info.ep_attr != nullptr && info.ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT) {
  reports_source_ = (info.caps & FI_SOURCE) != 0;
  tells_targets_ = (info.caps & FI_RMA_EVENT) != 0;
  transport().client().regions().set_domain(number(), domain.number());
  fid.fclass = FI_CLASS_EP;
  fid.context = user_context;
  fid.ops = table(endpoint_object_ops);
  ops = table(endpoint_ops);
  cm = table(name_ops);
  msg = table(message_ops);
  rma = table(rma_ops);
  tagged = table(tagged_ops);
  atomic = table(atomic_ops);
  collective = table(unsupported_collective);
}

Endpoint::~Endpoint() {
  transport().detach(*this);
  if (enabled_) transport().client().leave();
  release(shared_transmit_, shared_receive_, av_, eq_, transmit_cq_, receive_cq_, send_counter_,
          receive_counter_, write_counter_, read_counter_, remote_write_counter_, remote_read_counter_);
}

void Endpoint::bind(::fid& object, std::uint64_t flags) {
  switch (object.fclass) {
    case FI_CLASS_AV:
      attach(av_, object_of<AddressVector>(&object), "address vector");
      return;
    case FI_CLASS_CQ:
      bind_cq(object_of<CompletionQueue>(&object), flags);
      return;
    case FI_CLASS_CNTR:
      bind_counter(object_of<Counter>(&object), flags);
      return;
    case FI_CLASS_EQ:
      attach(eq_, object_of<EventQueue>(&object), "event queue");
      return;
    case FI_CLASS_STX_CTX:
      bind_shared(object_of<SharedTransmit>(&object));
      return;
    case FI_CLASS_SRX_CTX:
      bind_shared(object_of<SharedReceive>(&object));
      return;
    default:
      throw FabricError(FI_EINVAL,
                        "fi_ep_bind: expected an address vector, a completion queue, a counter, an event "
                        "queue or a shared context");
  }
}

void Endpoint::bind_cq(CompletionQueue& cq, std::uint64_t flags) {
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if ((flags & (FI_TRANSMIT | FI_RECV)) == 0) {
    throw FabricError(FI_EBADFLAGS, "fi_ep_bind: a completion queue needs FI_TRANSMIT or FI_RECV");
  }
  if ((flags & FI_TRANSMIT) != 0) {
    attach(transmit_cq_, cq, "completion queue for FI_TRANSMIT");
    transmit_selective_ = selective;
  }
  if ((flags & FI_RECV) != 0) {
    attach(receive_cq_, cq, "completion queue for FI_RECV");
    receive_selective_ = selective;
  }
}

void Endpoint::bind_counter(Counter& counter, std::uint64_t flags) {
  if ((flags & (FI_SEND | FI_RECV | FI_REMOTE_WRITE | FI_REMOTE_READ)) != 0) counter.count_arrivals();
  if ((flags & FI_SEND) != 0) attach(send_counter_, counter, "counter for FI_SEND");
  if ((flags & FI_RECV) != 0) attach(receive_counter_, counter, "counter for FI_RECV");
  if ((flags & FI_WRITE) != 0) attach(write_counter_, counter, "counter for FI_WRITE");
  if ((flags & FI_READ) != 0) attach(read_counter_, counter, "counter for FI_READ");
  if ((flags & FI_REMOTE_WRITE) != 0) attach(remote_write_counter_, counter, "counter for FI_REMOTE_WRITE");
  if ((flags & FI_REMOTE_READ) != 0) attach(remote_read_counter_, counter, "counter for FI_REMOTE_READ");
}

// Sandia OpenSHMEM binds one to an endpoint that it has not opened as sharing, and closes the context first.
void Endpoint::bind_shared(SharedTransmit& context) {
  check_domain(context.domain());
  if (shares_transmit_) attach(shared_transmit_, context, "shared transmit context");
}

void Endpoint::bind_shared(SharedReceive& context) {
  if (!shares_receive_)
    throw FabricError(FI_EINVAL, "fi_ep_bind: a shared context: expected rx_ctx_cnt FI_SHARED_CONTEXT");
  check_domain(context.domain());
  attach(shared_receive_, context, "shared receive context");
  engine().share_queues(*this, context);
}

void Endpoint::check_domain(const Domain& of) const {
  if (&of != &domain()) throw FabricError(FI_EINVAL, "fi_ep_bind: a shared context of another domain");
}

void Endpoint::enable() {
  if (av_ == nullptr) throw FabricError(FI_ENOAV, "fi_enable: no address vector is bound");
  if (transmit_cq_ == nullptr && send_counter_ == nullptr && write_counter_ == nullptr &&
      receive_cq_ == nullptr && receive_counter_ == nullptr) {
    throw FabricError(FI_ENOCQ, "fi_enable: no completion queue and no counter is bound");
  }
  if ((shares_transmit_ && shared_transmit_ == nullptr) || (shares_receive_ && shared_receive_ == nullptr))
    throw FabricError(FI_EOPBADSTATE, "fi_enable: FI_SHARED_CONTEXT: no shared context is bound");
  if (!enabled_) transport().enabled();
  enabled_ = true;
}

const void* Endpoint::take_acknowledgement() {
  const auto is_own = [](const auto& one) { return pthread_equal(one.first, pthread_self()) != 0; };
  const auto found = std::find_if(acknowledgements_.begin(), acknowledgements_.end(), is_own);
  if (found == acknowledgements_.end()) return nullptr;
  const void* const context = found->second;
  acknowledgements_.erase(found);
  return context;
}

EndpointName Endpoint::name() const {
  EndpointName name;
  name.rank = transport().client().rank();
  name.endpoint = number();
  name.rail = rail();
  return name;
}

const EndpointName& Endpoint::resolve(fi_addr_t address) const {
  const EndpointName* name = av_ != nullptr ? av_->find(address) : nullptr;
  if (name == nullptr)
    throw FabricError(FI_EINVAL, "an address that is not in the endpoint's address vector");
  if (name->rail != rail()) {
    throw FabricError(FI_EHOSTUNREACH,
                      "an endpoint of rank " + std::to_string(name->rank) + " at another network: domain '" +
                          domain_name(transport().client().header(), rail()) + "' does not reach it");
  }
  return *name;
}

Wanted Endpoint::wanted(fi_addr_t source, std::uint64_t tag, std::uint64_t ignore) const {
  if (!directed_ || source == FI_ADDR_UNSPEC)
    return {message::any_source, message::any_endpoint, tag, ignore};
  const EndpointName& name = resolve(source);
  return {name.rank, name.endpoint, tag, ignore};
}

Counter* Endpoint::counter_of(std::uint64_t flags) const {
  if ((flags & FI_RECV) != 0) return receive_counter_;
  if ((flags & FI_SEND) != 0) return send_counter_;
  if ((flags & FI_WRITE) != 0) return write_counter_;
  return (flags & FI_READ) != 0 ? read_counter_ : nullptr;
}

void Endpoint::tell(CompletionQueue* cq, const CompletionEntry& entry, bool reports) const {
  if (Counter* counter = counter_of(entry.flags)) {
    entry.error == 0 ? counter->count() : counter->count_error();
  }
  if (cq != nullptr && (reports || entry.error != 0))
    cq->push(entry);
  else
    transport().note_end(entry.recorded);
}

void Endpoint::accessed(std::uint64_t flags, std::uint64_t key) {
  count_access(flags, remote_write_counter_, remote_read_counter_);
  if (MemoryRegion* region = domain().find_region(key)) region->accessed(flags);
}

void Endpoint::received_data(std::uint64_t flags, std::size_t bytes, std::uint64_t data) {
  received({.flags = flags | FI_REMOTE_CQ_DATA, .length = bytes, .data = data}, true);
}

Buffer make_buffer(const Receiver& receiver, const iovec* pieces, std::size_t count) {
  if (count > segment_limit) throw FabricError(FI_EINVAL, "more pieces than iov_limit");
  Buffer buffer;
  buffer.count = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    buffer.pieces[i] = {message::address_of(pieces[i].iov_base), pieces[i].iov_len};
    if (is_in_gpu(receiver, buffer.pieces[i])) buffer.gpu_pieces |= 1U << i;
    buffer.length += pieces[i].iov_len;
  }
  return buffer;
}

Buffer make_buffer(const Receiver& receiver, const void* start, std::size_t length) {
  Buffer buffer = message::one_piece(message::address_of(start), length);
  if (is_in_gpu(receiver, buffer.pieces[0])) buffer.gpu_pieces = 1;
  return buffer;
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) {
  Domain& owner = domain_of(domain);
  return enter(owner.transport().client(), [&]() -> int {
    if (info == nullptr) return -FI_EINVAL;
    if (info->ep_attr != nullptr && info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC) {
      throw FabricError(FI_ENOSYS, "fi_endpoint: type: expected FI_EP_RDM");
    }
    *ep = new Endpoint(owner, *info, context);
    return 0;
  });
}

}  // namespace apenet::libfabric
