// fi_send, fi_recv and their kin.
#include <rdma/fi_errno.h>

#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/messages.hpp"
#include "api/libfabric/port.hpp"

namespace apenet::libfabric {
namespace {

ipc::Client& client_of(fid_ep* ep) {
  return endpoint_of(ep).port().client();
}

ssize_t send_to(fid_ep* ep, fi_addr_t to, SendCall& call) {
  Endpoint& endpoint = endpoint_of(ep);
  aim(call, endpoint.resolve(to));
  send(endpoint, call);
  return 0;
}

ssize_t receive(fid_ep* ep, const Buffer& buffer, fi_addr_t from, void* context, std::uint64_t flags) {
  Endpoint& endpoint = endpoint_of(ep);
  ReceiveCall call;
  call.buffer = buffer;
  call.wanted = endpoint.wanted(from, 0, ~std::uint64_t{0});
  call.owner.reports = endpoint.receive_reports(flags);
  call.multi = (flags & FI_MULTI_RECV) != 0;
  call.owner.context = context;
  if (call.multi && buffer.count != 1) throw FabricError(FI_EINVAL, "FI_MULTI_RECV: expected one piece");
  if ((flags & (FI_PEEK | FI_CLAIM)) != 0) return -FI_ENOSYS;
  receive(endpoint, call);
  return 0;
}

ssize_t recv(fid_ep* ep, void* start, std::size_t length, void* /*descriptor*/, fi_addr_t from,
             void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    return receive(ep, make_buffer(start, length), from, context, endpoint_of(ep).receive_flags());
  });
}

ssize_t recvv(fid_ep* ep, const iovec* pieces, void** /*descriptors*/, std::size_t count, fi_addr_t from,
              void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    return receive(ep, make_buffer(pieces, count), from, context, endpoint_of(ep).receive_flags());
  });
}

ssize_t recvmsg(fid_ep* ep, const fi_msg* message, std::uint64_t flags) {
  return enter(client_of(ep), [&]() -> ssize_t {
    return receive(ep, make_buffer(message->msg_iov, message->iov_count), message->addr, message->context,
                   flags);
  });
}

SendCall plain_call(fid_ep* ep, const Buffer& buffer, void* context) {
  SendCall call;
  call.buffer = buffer;
  call.owner.context = context;
  call.owner.reports = endpoint_of(ep).transmit_reports(endpoint_of(ep).transmit_flags());
  return call;
}

ssize_t send(fid_ep* ep, const void* start, std::size_t length, void* /*descriptor*/, fi_addr_t to,
             void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call = plain_call(ep, make_buffer(start, length), context);
    return send_to(ep, to, call);
  });
}

ssize_t sendv(fid_ep* ep, const iovec* pieces, void** /*descriptors*/, std::size_t count, fi_addr_t to,
              void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call = plain_call(ep, make_buffer(pieces, count), context);
    return send_to(ep, to, call);
  });
}

ssize_t sendmsg(fid_ep* ep, const fi_msg* message, std::uint64_t flags) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call = plain_call(ep, make_buffer(message->msg_iov, message->iov_count), message->context);
    call.owner.reports = endpoint_of(ep).transmit_reports(flags);
    call.inject = (flags & FI_INJECT) != 0;
    call.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
    call.data = static_cast<std::uint32_t>(message->data);
    return send_to(ep, message->addr, call);
  });
}

ssize_t inject(fid_ep* ep, const void* start, std::size_t length, fi_addr_t to) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call;
    call.buffer = make_buffer(start, length);
    call.inject = true;
    return send_to(ep, to, call);
  });
}

ssize_t senddata(fid_ep* ep, const void* start, std::size_t length, void* /*descriptor*/, std::uint64_t data,
                 fi_addr_t to, void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call = plain_call(ep, make_buffer(start, length), context);
    call.has_data = true;
    call.data = static_cast<std::uint32_t>(data);
    return send_to(ep, to, call);
  });
}

ssize_t injectdata(fid_ep* ep, const void* start, std::size_t length, std::uint64_t data, fi_addr_t to) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call;
    call.buffer = make_buffer(start, length);
    call.inject = true;
    call.has_data = true;
    call.data = static_cast<std::uint32_t>(data);
    return send_to(ep, to, call);
  });
}

}  // namespace

const fi_ops_msg message_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = recv,
    .recvv = recvv,
    .recvmsg = recvmsg,
    .send = send,
    .sendv = sendv,
    .sendmsg = sendmsg,
    .inject = inject,
    .senddata = senddata,
    .injectdata = injectdata,
};

}  // namespace apenet::libfabric
