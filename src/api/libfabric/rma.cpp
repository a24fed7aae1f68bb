// fi_write, fi_read and their kin. Keys and bounds are checked where the access takes effect.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>

#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/messages.hpp"
#include "api/libfabric/transport.hpp"

namespace apenet::libfabric {
namespace {

// The default of a reliable endpoint is that a completion says "it is there"; only FI_INJECT_COMPLETE asks
// for less.
bool asks_for_delivery(std::uint64_t flags) {
  return (flags & FI_INJECT_COMPLETE) == 0 || (flags & (FI_DELIVERY_COMPLETE | FI_TRANSMIT_COMPLETE)) != 0;
}

// A call whose flags are the endpoint's own.
AccessCall plain_call(fid_ep* ep, const Buffer& buffer, fi_addr_t peer, void* context) {
  Endpoint& endpoint = endpoint_of(ep);
  AccessCall call;
  call.buffer = buffer;
  aim(call, endpoint.resolve(peer));
  call.owner.reports = endpoint.transmit_reports(endpoint.transmit_flags());
  call.delivered = asks_for_delivery(endpoint.transmit_flags());
  call.owner.context = context;
  return call;
}

void read_if_possible(Endpoint& endpoint, AccessCall& call) {
  if (endpoint.transport().client().header().rails[endpoint.rail()].get_supported == 0) {
    throw FabricError(FI_EOPNOTSUPP, "fi_read: the card of this machine cannot read remote memory");
  }
  call.inject = false;  // says nothing about a read
  read(endpoint, call);
}

void add_data(AccessCall& call, std::uint64_t data) {
  call.has_data = true;
  call.data = static_cast<std::uint32_t>(data);
}

// The remote side of a message call.
std::array<Segment, segment_limit> segments_of(const fi_msg_rma& message, std::size_t local_length) {
  if (message.rma_iov_count > segment_limit) throw FabricError(FI_EINVAL, "more pieces than rma_iov_limit");
  std::array<Segment, segment_limit> segments;
  std::size_t length = 0;
  for (std::size_t i = 0; i < message.rma_iov_count; ++i) {
    segments[i] = {message.rma_iov[i].addr, message.rma_iov[i].len};
    length += message.rma_iov[i].len;
  }
  if (length != local_length)
    throw FabricError(FI_EINVAL, "local and remote memory of an access differ in length");
  return segments;
}

AccessCall message_call(fid_ep* ep, const fi_msg_rma& message, std::uint64_t flags) {
  AccessCall call = plain_call(ep, make_buffer(endpoint_of(ep), message.msg_iov, message.iov_count),
                               message.addr, message.context);
  call.owner.reports = endpoint_of(ep).transmit_reports(flags);
  call.inject = (flags & FI_INJECT) != 0;
  call.delivered = asks_for_delivery(flags);
  call.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
  call.data = static_cast<std::uint32_t>(message.data);
  for (std::size_t i = 0; i < std::min(message.rma_iov_count, segment_limit); ++i)
    call.keys[i] = message.rma_iov[i].key;
  return call;
}

// fi_read and fi_write with their kin. Start: the type of the local buffer's address.
template <void access(Endpoint&, AccessCall&), typename Start>
struct Accesses {
  static void at(fid_ep* ep, AccessCall& call, std::uint64_t address, std::uint64_t key) {
    call.keys[0] = key;
    const Segment remote{address, call.buffer.length};
    call.remote = {&remote, 1};
    access(endpoint_of(ep), call);
  }

  static ssize_t buffer(fid_ep* ep, Start start, std::size_t length, void* /*descriptor*/, fi_addr_t peer,
                        std::uint64_t address, std::uint64_t key, void* context) {
    return enter(client_of(ep), [&] {
      AccessCall call = plain_call(ep, make_buffer(endpoint_of(ep), start, length), peer, context);
      at(ep, call, address, key);
    });
  }

  static ssize_t pieces(fid_ep* ep, const iovec* pieces, void** /*descriptors*/, std::size_t count,
                        fi_addr_t peer, std::uint64_t address, std::uint64_t key, void* context) {
    return enter(client_of(ep), [&] {
      AccessCall call = plain_call(ep, make_buffer(endpoint_of(ep), pieces, count), peer, context);
      at(ep, call, address, key);
    });
  }

  static ssize_t message(fid_ep* ep, const fi_msg_rma* message, std::uint64_t flags) {
    return enter(client_of(ep), [&] {
      AccessCall call = message_call(ep, *message, flags);
      const auto segments = segments_of(*message, call.buffer.length);
      call.remote = {segments.data(), message->rma_iov_count};
      access(endpoint_of(ep), call);
    });
  }
};
using Reads = Accesses<read_if_possible, void*>;
using Writes = Accesses<libfabric::write, const void*>;

AccessCall inject_call(fid_ep* ep, const void* start, std::size_t length, fi_addr_t peer) {
  AccessCall call = plain_call(ep, make_buffer(endpoint_of(ep), start, length), peer, nullptr);
  call.owner.reports = false;
  call.inject = true;
  return call;
}

ssize_t inject(fid_ep* ep, const void* start, std::size_t length, fi_addr_t peer, std::uint64_t address,
               std::uint64_t key) {
  return enter(client_of(ep), [&] {
    AccessCall call = inject_call(ep, start, length, peer);
    Writes::at(ep, call, address, key);
  });
}

ssize_t write_with_data(fid_ep* ep, const void* start, std::size_t length, void* /*descriptor*/,
                        std::uint64_t data, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
                        void* context) {
  return enter(client_of(ep), [&] {
    AccessCall call = plain_call(ep, make_buffer(endpoint_of(ep), start, length), peer, context);
    add_data(call, data);
    Writes::at(ep, call, address, key);
  });
}

ssize_t inject_with_data(fid_ep* ep, const void* start, std::size_t length, std::uint64_t data,
                         fi_addr_t peer, std::uint64_t address, std::uint64_t key) {
  return enter(client_of(ep), [&] {
    AccessCall call = inject_call(ep, start, length, peer);
    add_data(call, data);
    Writes::at(ep, call, address, key);
  });
}

}  // namespace

const fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = Reads::buffer,
    .readv = Reads::pieces,
    .readmsg = Reads::message,
    .write = Writes::buffer,
    .writev = Writes::pieces,
    .writemsg = Writes::message,
    .inject = inject,
    .writedata = write_with_data,
    .injectdata = inject_with_data,
};

}  // namespace apenet::libfabric
