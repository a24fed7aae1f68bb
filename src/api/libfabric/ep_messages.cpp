// fi_send, fi_recv and their kin; fi_tsend, fi_trecv and their kin.
#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "api/libfabric/cq.hpp"
#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/messages.hpp"
#include "api/libfabric/transport.hpp"
#include "api/libfabric/unsupported.hpp"
#include "runtime/ipc/program_tags.hpp"

namespace apenet::libfabric {
namespace {

bool is_in_call_of_open_mpi(ipc::Client& client) {
  constexpr std::size_t open_mpi_handle_bytes = 8;
  const ipc::OrderedThread* const own = client.ordered();
  return own != nullptr && own->call_depth > 0 &&
         client.notes().library.handle_bytes.get() == open_mpi_handle_bytes;
}

ssize_t receive_tagged(Receiver& receiver, ReceiveCall& call, std::uint64_t flags) {
  call.tagged = true;
  if ((flags & (FI_PEEK | FI_CLAIM)) != 0) {
    Endpoint* endpoint = receiver.as_endpoint();
    if (endpoint == nullptr) return -FI_ENOSYS;
    receiver.transport().note_unreceived();
    if ((flags & FI_CLAIM) != 0 && (flags & FI_PEEK) == 0)
      return receive_claimed(*endpoint, call, (flags & FI_DISCARD) != 0) ? 0 : -FI_ENOMSG;
    if (endpoint->receive_cq() == nullptr) return -FI_ENOCQ;
    peek(*endpoint, call.wanted, flags, call.owner.context);
    return 0;
  }
  ipc::Client& client = receiver.transport().client();
  call.number = client.block().program_messages.number_receive();
  if (is_in_call_of_open_mpi(client) && ipc::is_acknowledgement(call.wanted.tag, false)) {
    if (Endpoint* const endpoint = receiver.as_endpoint()) endpoint->note_acknowledgement(call.owner.context);
  }
  receive(receiver, call);
  return 0;
}

ssize_t receive_untagged(Receiver& receiver, ReceiveCall& call, std::uint64_t flags) {
  call.multi = (flags & FI_MULTI_RECV) != 0;
  if (call.multi && call.buffer.count != 1) throw FabricError(FI_EINVAL, "FI_MULTI_RECV: expected one piece");
  if ((flags & (FI_PEEK | FI_CLAIM)) != 0) return -FI_ENOSYS;
  receive(receiver, call);
  return 0;
}

// From whom a receive takes messages.
Wanted wanted(Receiver& receiver, fi_addr_t from, std::uint64_t tag, std::uint64_t ignore) {
  const Endpoint* endpoint = receiver.as_endpoint();
  return endpoint != nullptr ? endpoint->wanted(from, tag, ignore)
                             : Wanted{message::any_source, message::any_endpoint, tag, ignore};
}

void add_data(SendCall& call, std::uint64_t data) {
  call.has_data = true;
  call.data = static_cast<std::uint32_t>(data);
}

// Whether the message is the buffer that the program sends, not one of the MPI library's own.
bool is_sent_by_program(ipc::Client& client, const Buffer& buffer) {
  return buffer.count == 1 && !client.has_threads() &&
         client.block().program_messages.take_send(buffer.pieces[0].address);
}

// The library keeps the context of a send on the stack if its call goes on until the send is complete.
bool is_on_stack(const void* context) {
  constexpr std::ptrdiff_t most_stack_bytes = 65536;
  const auto above =
      reinterpret_cast<std::intptr_t>(context) - reinterpret_cast<std::intptr_t>(__builtin_frame_address(0));
  return above > 0 && above < most_stack_bytes;
}

// Waits until a send of Open MPI is complete, if the library would only read its queue until then. It does so
// with a lock in memory, which the order of threads does not see: others try to take it again and again
// without a pause, also while the one that has it waits for its turn in the read. Here it has none.
void await_end(Endpoint& endpoint, CompletionQueue* queue, const void* context) {
  if (queue == nullptr || context == nullptr) return;
  ipc::Client& client = endpoint.transport().client();
  AwaitedCompletion end{.context = context};
  bool is_over = false;
  enter(client, [&] { queue->begin_to_await(end); });
  while (!is_over && enter(client, [&] { is_over = queue->await(end); }) == 0) {
  }
  enter(client, [&] { queue->end_to_await(end); });
}

// The library posts an acknowledgement while it reads its queue, and has the lock. For the one of a send of
// its own it reads the queue, too.
bool may_wait(const SendCall& call, const void* acknowledgement) {
  return call.owner.reports && acknowledgement == nullptr && !ipc::is_acknowledgement(call.tag, false);
}

void await_send(Endpoint& endpoint, const void* context) {
  if (!is_in_call_of_open_mpi(endpoint.transport().client()) || !is_on_stack(context)) return;
  await_end(endpoint, endpoint.transmit_cq(), context);
}

// The calls without a tag (Tag is empty), and those with one (Tag is std::uint64_t).
template <typename... Tag>
struct Calls {
  static constexpr bool tagged = sizeof...(Tag) == 1;
  using Message = std::conditional_t<tagged, fi_msg_tagged, fi_msg>;

  static ssize_t recv_buffer(fid_ep* ep, const Buffer& buffer, fi_addr_t from, Tag... tag, Tag... ignore,
                             void* context, std::uint64_t flags) {
    Receiver& receiver = receiver_of(ep);
    if (&receiver.queues() != &receiver)
      throw FabricError(FI_EOPBADSTATE, "a receive at an endpoint that shares a receive context");
    ReceiveCall call;
    call.buffer = buffer;
    call.owner.reports = (flags & FI_COMPLETION) != 0;
    call.owner.context = context;
    if constexpr (tagged) {
      call.wanted = wanted(receiver, from, tag..., ignore...);
      return receive_tagged(receiver, call, flags);
    } else {
      call.wanted = wanted(receiver, from, 0, ~std::uint64_t{0});
      return receive_untagged(receiver, call, flags);
    }
  }

  static ssize_t recv(fid_ep* ep, void* start, std::size_t length, void* /*descriptor*/, fi_addr_t from,
                      Tag... tag, Tag... ignore, void* context) {
    return enter(receiver_of(ep).transport().client(), [&] {
      return recv_buffer(ep, make_buffer(receiver_of(ep), start, length), from, tag..., ignore..., context,
                         receiver_of(ep).receive_flags());
    });
  }

  static ssize_t recvv(fid_ep* ep, const iovec* pieces, void** /*descriptors*/, std::size_t count,
                       fi_addr_t from, Tag... tag, Tag... ignore, void* context) {
    return enter(receiver_of(ep).transport().client(), [&] {
      return recv_buffer(ep, make_buffer(receiver_of(ep), pieces, count), from, tag..., ignore..., context,
                         receiver_of(ep).receive_flags());
    });
  }

  static ssize_t recvmsg(fid_ep* ep, const Message* message, std::uint64_t flags) {
    return enter(receiver_of(ep).transport().client(), [&] {
      const Buffer buffer = make_buffer(receiver_of(ep), message->msg_iov, message->iov_count);
      if constexpr (tagged) {
        return recv_buffer(ep, buffer, message->addr, message->tag, message->ignore, message->context, flags);
      } else {
        return recv_buffer(ep, buffer, message->addr, message->context, flags);
      }
    });
  }

  // A call that reports nothing.
  static SendCall quiet(const Buffer& buffer, Tag... tag) {
    SendCall call;
    call.buffer = buffer;
    call.tagged = tagged;
    if constexpr (tagged) call.tag = (tag, ...);
    return call;
  }

  static SendCall plain(fid_ep* ep, const Buffer& buffer, Tag... tag, void* context, std::uint64_t flags) {
    SendCall call = quiet(buffer, tag...);
    call.owner.context = context;
    call.owner.reports = endpoint_of(ep).transmit_reports(flags);
    return call;
  }

  // Returns the context of the receive that the thread has posted for its acknowledgement, or nullptr.
  static const void* post(fid_ep* ep, fi_addr_t to, SendCall& call) {
    Endpoint& endpoint = endpoint_of(ep);
    aim(call, endpoint.resolve(to));
    call.no_reply = tagged && is_sent_by_program(endpoint.transport().client(), call.buffer);
    libfabric::send(endpoint, call);
    return endpoint.take_acknowledgement();
  }

  static ssize_t send(fid_ep* ep, const void* start, std::size_t length, void* /*descriptor*/, fi_addr_t to,
                      Tag... tag, void* context) {
    bool waits = false;
    const ssize_t result = enter(client_of(ep), [&] {
      SendCall call = plain(ep, make_buffer(endpoint_of(ep), start, length), tag..., context,
                            endpoint_of(ep).transmit_flags());
      waits = may_wait(call, post(ep, to, call));
    });
    if (tagged && result == 0 && waits) await_send(endpoint_of(ep), context);
    return result;
  }

  static ssize_t sendv(fid_ep* ep, const iovec* pieces, void** /*descriptors*/, std::size_t count,
                       fi_addr_t to, Tag... tag, void* context) {
    return enter(client_of(ep), [&] {
      SendCall call = plain(ep, make_buffer(endpoint_of(ep), pieces, count), tag..., context,
                            endpoint_of(ep).transmit_flags());
      post(ep, to, call);
    });
  }

  static ssize_t sendmsg(fid_ep* ep, const Message* message, std::uint64_t flags) {
    return enter(client_of(ep), [&] {
      const Buffer buffer = make_buffer(endpoint_of(ep), message->msg_iov, message->iov_count);
      SendCall call;
      if constexpr (tagged) {
        call = plain(ep, buffer, message->tag, message->context, flags);
      } else {
        call = plain(ep, buffer, message->context, flags);
      }
      call.inject = (flags & FI_INJECT) != 0;
      call.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
      call.data = static_cast<std::uint32_t>(message->data);
      post(ep, message->addr, call);
    });
  }

  static ssize_t senddata(fid_ep* ep, const void* start, std::size_t length, void* /*descriptor*/,
                          std::uint64_t data, fi_addr_t to, Tag... tag, void* context) {
    bool waits = false;
    const ssize_t result = enter(client_of(ep), [&] {
      SendCall call = plain(ep, make_buffer(endpoint_of(ep), start, length), tag..., context,
                            endpoint_of(ep).transmit_flags());
      add_data(call, data);
      waits = may_wait(call, post(ep, to, call));
    });
    if (tagged && result == 0 && waits) await_send(endpoint_of(ep), context);
    return result;
  }

  static ssize_t inject(fid_ep* ep, const void* start, std::size_t length, fi_addr_t to, Tag... tag) {
    return enter(client_of(ep), [&] {
      SendCall call = quiet(make_buffer(endpoint_of(ep), start, length), tag...);
      call.inject = true;
      post(ep, to, call);
    });
  }

  static ssize_t injectdata(fid_ep* ep, const void* start, std::size_t length, std::uint64_t data,
                            fi_addr_t to, Tag... tag) {
    return enter(client_of(ep), [&] {
      SendCall call = quiet(make_buffer(endpoint_of(ep), start, length), tag...);
      call.inject = true;
      add_data(call, data);
      post(ep, to, call);
    });
  }

  template <typename Table>
  static constexpr Table table = {
      .size = sizeof(Table),
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
  template <typename Table>
  static constexpr Table receives = {
      .size = sizeof(Table),
      .recv = recv,
      .recvv = recvv,
      .recvmsg = recvmsg,
      .send = unsupported,
      .sendv = unsupported,
      .sendmsg = unsupported,
      .inject = unsupported,
      .senddata = unsupported,
      .injectdata = unsupported,
  };
};

}  // namespace

const fi_ops_msg message_ops = Calls<>::table<fi_ops_msg>;
const fi_ops_tagged tagged_ops = Calls<std::uint64_t>::table<fi_ops_tagged>;
const fi_ops_msg shared_message_ops = Calls<>::receives<fi_ops_msg>;
const fi_ops_tagged shared_tagged_ops = Calls<std::uint64_t>::receives<fi_ops_tagged>;

}  // namespace apenet::libfabric
