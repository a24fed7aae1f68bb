#include "api/libfabric/messages.hpp"

#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/transport.hpp"

namespace apenet::libfabric {
namespace {

using message::Inbox;
using message::Message;
using message::PutNotice;
using message::PutNoticeKind;
using message::Receive;
using message::Transfer;
using message::TransferKind;

std::uint64_t data_flag(bool has_data) {
  return has_data ? FI_REMOTE_CQ_DATA : 0;
}

std::uint64_t message_flag(bool tagged) {
  return tagged ? FI_TAGGED : FI_MSG;
}

std::uint64_t completion_flags(const Transfer& transfer) {
  switch (transfer.kind) {
    case TransferKind::write:
      return FI_RMA | FI_WRITE;
    case TransferKind::read:
      return FI_RMA | FI_READ;
    case TransferKind::message:
      break;
  }
  return FI_SEND | message_flag(transfer.tagged);
}

void report_peeked(Endpoint& endpoint, const Message& message, void* context) {
  endpoint.receive_cq()->push({.context = context,
                               .flags = FI_RECV | FI_TAGGED | data_flag(message.header.has_data != 0),
                               .length = static_cast<std::size_t>(message.length()),
                               .data = message.header.data,
                               .tag = message.header.tag,
                               .source = endpoint.address_of(message)});
}

void begin_access(Endpoint& endpoint, AccessCall& call, ipc::RecordingKind kind) {
  call.notifies = endpoint.tells_targets();
  if (Recorder* recorder = endpoint.transport().recorder())
    call.owner.number =
        recorder->accessed(kind, call.target, call.buffer,
                           call.remote.empty() ? 0 : call.remote.front().address, endpoint.rail());
}

}  // namespace

void send(Endpoint& endpoint, SendCall& call) {
  endpoint.transport().real_gpus().fetch(call.buffer);
  Recorder* recorder = endpoint.transport().recorder();
  if (recorder != nullptr)
    call.owner.number = recorder->sent(call.target, call.tagged, call.tag, call.buffer, endpoint.rail());
  if (!endpoint.engine().send(endpoint, call)) return;
  // Nothing ever waits for the end of a send without a report.
  endpoint.transmitted({.context = call.owner.context,
                        .flags = FI_SEND | message_flag(call.tagged),
                        .recorded = call.owner.reports ? call.owner.number : 0},
                       call.owner.reports);
}

void write(Endpoint& endpoint, AccessCall& call) {
  endpoint.transport().real_gpus().fetch(call.buffer);
  begin_access(endpoint, call, ipc::RecordingKind::put);
  endpoint.engine().write(endpoint, call);
}

void read(Endpoint& endpoint, AccessCall& call) {
  begin_access(endpoint, call, ipc::RecordingKind::got);
  endpoint.engine().read(endpoint, call);
}

void receive(Receiver& receiver, ReceiveCall& call) {
  if (Recorder* recorder = receiver.transport().recorder(); recorder != nullptr && !call.multi)
    call.owner.number = recorder->received();
  receiver.engine().receive(receiver, call);
}

void peek(Endpoint& endpoint, const Wanted& wanted, std::uint64_t flags, void* context) {
  Transport& transport = endpoint.transport();
  Transport::Engine& engine = endpoint.engine();
  Transport::Engine::Stored* kept = engine.find(endpoint, wanted);
  // MPI_Probe goes on to wait for whatever comes, not only for this message: it may not be held here.
  const bool waits = transport.client().progress().waits();
  while (kept == nullptr && (waits ? transport.progress_visible() : transport.progress()))
    kept = engine.find(endpoint, wanted);
  if (kept == nullptr) {
    endpoint.receive_cq()->push({.context = context,
                                 .flags = FI_RECV | FI_TAGGED,
                                 .tag = wanted.tag,
                                 .error = FI_ENOMSG,
                                 .detail = static_cast<int>(ErrorDetail::no_message)});
    return;
  }
  report_peeked(endpoint, kept->message, context);
  if ((flags & FI_DISCARD) != 0) {
    engine.discard_kept(*kept);
  } else if ((flags & FI_CLAIM) != 0) {
    engine.claim(*kept, context);
  }
}

bool receive_claimed(Endpoint& endpoint, const ReceiveCall& call, bool discard) {
  Transport::Engine& engine = endpoint.engine();
  Transport::Engine::Stored* kept = engine.claimed(endpoint, call.owner.context);
  if (kept == nullptr) return false;
  if (discard) {
    report_peeked(endpoint, kept->message, call.owner.context);
    engine.discard_claimed(*kept);
  } else {
    engine.receive_claimed(endpoint, call, *kept);
  }
  return true;
}

bool cancel(Endpoint& endpoint, void* context) {
  Transport::Engine& engine = endpoint.engine();
  for (const bool tagged : {true, false}) {
    Receive* receive = engine.cancel(endpoint, tagged, context);
    if (receive == nullptr) continue;
    endpoint.received({.context = context,
                       .flags = FI_RECV | message_flag(tagged),
                       .tag = receive->tag,
                       .error = FI_ECANCELED,
                       .detail = static_cast<int>(ErrorDetail::cancelled)},
                      true);
    engine.forget_receive(*receive);
    return true;
  }
  return false;
}

// What the engine tells.

void Transport::matched(Receive& receive, const Message& message) {
  const Endpoint& reached = *static_cast<Endpoint*>(receive.inbox);
  receive.owner.address = reached.address_of(message);
  Recorder* recording = recorder();
  if (recording == nullptr) return;
  // What was posted before virtual time began, and a part of a multi-receive, counts from here.
  if (receive.owner.number == 0) receive.owner.number = recording->received();
  recording->matched(receive.owner.number, message.source, receive.tagged, receive.tag, receive.length,
                     receive.buffer, reached.rail());
}

void Transport::received(Receive& receive, bool ends_multi) {
  if (receive.inbox == nullptr) return note_end(receive.owner.number);
  CompletionEntry entry;
  entry.recorded = receive.owner.number;
  entry.context = receive.owner.context;
  entry.flags = FI_RECV | message_flag(receive.tagged) | data_flag(receive.has_data);
  entry.length = static_cast<std::size_t>(receive.expected);
  if (receive.buffer.count > 0) {
    const std::uint64_t begin = receive.buffer.pieces[0].address;
    entry.buffer =
        message::memory_at(receive.buffer.is_in_gpu(0) ? real_gpus_.programs_address(begin) : begin);
  }
  entry.data = receive.data;
  entry.tag = receive.tag;
  entry.source = receive.owner.address;
  if (receive.failed) {
    entry.error = FI_EFAULT;
    entry.detail = static_cast<int>(ErrorDetail::bad_address);
  } else if (receive.expected < receive.length) {
    entry.error = FI_ETRUNC;
    entry.detail = static_cast<int>(ErrorDetail::truncated);
    entry.missing = static_cast<std::size_t>(receive.length - receive.expected);
  }
  if (!receive.failed && !real_gpus_.deliver(receive.buffer, receive.expected)) entry.fail_at_device();
  if (ends_multi) entry.flags |= FI_MULTI_RECV;
  Endpoint& reached = *static_cast<Endpoint*>(receive.inbox);
  reached.received(entry, reached.receive_reports(receive.owner.reports) || ends_multi);
}

void Transport::ended(Transfer& transfer) {
  if (transfer.inbox == nullptr) return note_end(transfer.owner.number);
  CompletionEntry entry;
  entry.recorded = transfer.owner.number;
  entry.context = transfer.owner.context;
  entry.flags = completion_flags(transfer);
  entry.fail(transfer.fault);
  if (transfer.kind == TransferKind::read && entry.error == 0 &&
      !real_gpus_.deliver(transfer.buffer, transfer.buffer.length))
    entry.fail_at_device();
  static_cast<Endpoint*>(transfer.inbox)->transmitted(entry, transfer.owner.reports);
}

void Transport::written(Inbox* inbox, const ipc::Event& event, const PutNotice& notice) {
  if (inbox == nullptr || event.fault != ipc::AccessFault::none) return;
  auto& endpoint = *static_cast<Endpoint*>(inbox);
  endpoint.accessed(FI_REMOTE_WRITE, event.key);
  if (notice.kind == PutNoticeKind::remote_data)
    endpoint.received_data(FI_RMA | FI_REMOTE_WRITE, static_cast<std::size_t>(event.bytes), notice.value);
}

void Transport::was_read(Inbox* inbox, const Message& message) {
  if (inbox != nullptr) static_cast<Endpoint*>(inbox)->accessed(FI_REMOTE_READ, message.header.tag);
}

}  // namespace apenet::libfabric
