// fi_tsend, fi_trecv and their kin.
#include <rdma/fi_errno.h>

#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/messages.hpp"
#include "api/libfabric/port.hpp"

namespace apenet::libfabric {
namespace {

ssize_t send_to(fid_ep* ep, fi_addr_t to, SendCall& call) {
  Endpoint& endpoint = endpoint_of(ep);
  call.tagged = true;
  aim(call, endpoint.resolve(to));
  send(endpoint, call);
  return 0;
}

ssize_t receive(fid_ep* ep, const Buffer& buffer, fi_addr_t from, std::uint64_t tag, std::uint64_t ignore,
                void* context, std::uint64_t flags) {
  Endpoint& endpoint = endpoint_of(ep);
  ReceiveCall call;
  call.buffer = buffer;
  call.wanted = endpoint.wanted(from, tag, ignore);
  call.tagged = true;
  call.owner.reports = endpoint.receive_reports(flags);
  call.owner.context = context;
  if ((flags & FI_PEEK) != 0) {
    if (endpoint.receive_cq() == nullptr) return -FI_ENOCQ;
    peek(endpoint, call.wanted, flags, context);
    return 0;
  }
  if ((flags & FI_CLAIM) != 0)
    return receive_claimed(endpoint, call, (flags & FI_DISCARD) != 0) ? 0 : -FI_ENOMSG;
  receive(endpoint, call);
  return 0;
}

ipc::Client& client_of(fid_ep* ep) {
  return endpoint_of(ep).port().client();
}

ssize_t recv(fid_ep* ep, void* start, std::size_t length, void* /*descriptor*/, fi_addr_t from,
             std::uint64_t tag, std::uint64_t ignore, void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    return receive(ep, make_buffer(start, length), from, tag, ignore, context,
                   endpoint_of(ep).receive_flags());
  });
}

ssize_t recvv(fid_ep* ep, const iovec* pieces, void** /*descriptors*/, std::size_t count, fi_addr_t from,
              std::uint64_t tag, std::uint64_t ignore, void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    return receive(ep, make_buffer(pieces, count), from, tag, ignore, context,
                   endpoint_of(ep).receive_flags());
  });
}

ssize_t recvmsg(fid_ep* ep, const fi_msg_tagged* message, std::uint64_t flags) {
  return enter(client_of(ep), [&]() -> ssize_t {
    return receive(ep, make_buffer(message->msg_iov, message->iov_count), message->addr, message->tag,
                   message->ignore, message->context, flags);
  });
}

SendCall plain_call(fid_ep* ep, const Buffer& buffer, std::uint64_t tag, void* context) {
  SendCall call;
  call.buffer = buffer;
  call.tag = tag;
  call.owner.context = context;
  call.owner.reports = endpoint_of(ep).transmit_reports(endpoint_of(ep).transmit_flags());
  return call;
}

ssize_t send(fid_ep* ep, const void* start, std::size_t length, void* /*descriptor*/, fi_addr_t to,
             std::uint64_t tag, void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call = plain_call(ep, make_buffer(start, length), tag, context);
    return send_to(ep, to, call);
  });
}

ssize_t sendv(fid_ep* ep, const iovec* pieces, void** /*descriptors*/, std::size_t count, fi_addr_t to,
              std::uint64_t tag, void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call = plain_call(ep, make_buffer(pieces, count), tag, context);
    return send_to(ep, to, call);
  });
}

ssize_t sendmsg(fid_ep* ep, const fi_msg_tagged* message, std::uint64_t flags) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call =
        plain_call(ep, make_buffer(message->msg_iov, message->iov_count), message->tag, message->context);
    call.owner.reports = endpoint_of(ep).transmit_reports(flags);
    call.inject = (flags & FI_INJECT) != 0;
    call.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
    call.data = static_cast<std::uint32_t>(message->data);
    return send_to(ep, message->addr, call);
  });
}

ssize_t inject(fid_ep* ep, const void* start, std::size_t length, fi_addr_t to, std::uint64_t tag) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call;
    call.buffer = make_buffer(start, length);
    call.tag = tag;
    call.inject = true;
    return send_to(ep, to, call);
  });
}

ssize_t senddata(fid_ep* ep, const void* start, std::size_t length, void* /*descriptor*/, std::uint64_t data,
                 fi_addr_t to, std::uint64_t tag, void* context) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call = plain_call(ep, make_buffer(start, length), tag, context);
    call.has_data = true;
    call.data = static_cast<std::uint32_t>(data);
    return send_to(ep, to, call);
  });
}

ssize_t injectdata(fid_ep* ep, const void* start, std::size_t length, std::uint64_t data, fi_addr_t to,
                   std::uint64_t tag) {
  return enter(client_of(ep), [&]() -> ssize_t {
    SendCall call;
    call.buffer = make_buffer(start, length);
    call.tag = tag;
    call.inject = true;
    call.has_data = true;
    call.data = static_cast<std::uint32_t>(data);
    return send_to(ep, to, call);
  });
}

}  // namespace

const fi_ops_tagged tagged_ops = {
    .size = sizeof(fi_ops_tagged),
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
