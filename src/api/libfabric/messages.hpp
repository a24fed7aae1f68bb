// Messages and remote accesses of an endpoint, arguments checked: what libfabric adds to the message engine.
#pragma once

#include <rdma/fi_endpoint.h>

#include <cstdint>

#include "api/libfabric/wire.hpp"
#include "message/engine.hpp"

namespace apenet::libfabric {

class Endpoint;
class Receiver;

using message::AccessCall;
using message::Buffer;
using message::ReceiveCall;
using message::Segment;
using message::SendCall;
using message::Wanted;

// Where a call goes.
template <typename Call>
void aim(Call& call, const EndpointName& to) {
  call.target = to.rank;
  call.target_endpoint = static_cast<std::uint16_t>(to.endpoint);
}

void send(Endpoint& endpoint, SendCall& call);
void write(Endpoint& endpoint, AccessCall& call);
void read(Endpoint& endpoint, AccessCall& call);
void receive(Receiver& receiver, ReceiveCall& call);
// fi_trecvmsg with FI_PEEK, FI_CLAIM and FI_DISCARD. receive_claimed() is false when no message was claimed
// under the call's context.
void peek(Endpoint& endpoint, const Wanted& wanted, std::uint64_t flags, void* context);
bool receive_claimed(Endpoint& endpoint, const ReceiveCall& call, bool discard);
// False: no posted receive has this context.
bool cancel(Endpoint& endpoint, void* context);

}  // namespace apenet::libfabric
