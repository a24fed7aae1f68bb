#include "api/libfabric/atomics.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/region.hpp"
#include "api/libfabric/transport.hpp"

namespace apenet::libfabric {
namespace {

// Elements of one message: operands, and comparands behind them.
std::size_t elements_of_message(const AtomicOperation& operation) {
  const std::size_t operands = operation.form == AtomicForm::compare ? 2 : 1;
  return atomic_payload_bytes / (operands * bytes_of(operation.type));
}

std::uint64_t needed_access(const AtomicOperation& operation) {
  if (operation.form == AtomicForm::write) return FI_REMOTE_WRITE;
  return operation.op == FI_ATOMIC_READ ? FI_REMOTE_READ : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

// What completions call it.
std::uint64_t remote_kind(AtomicForm form) {
  return form == AtomicForm::write ? FI_REMOTE_WRITE : FI_REMOTE_READ;
}

// Fetching operations count as reads. Those that change memory count as writes, too: Sandia OpenSHMEM waits
// for changes of its memory with a counter for FI_REMOTE_WRITE alone.
std::uint64_t counted_kinds(const AtomicOperation& operation) {
  const bool changes = operation.op != FI_ATOMIC_READ;
  return remote_kind(operation.form) | (changes ? std::uint64_t{FI_REMOTE_WRITE} : 0);
}

}  // namespace

void Atomics::post(Endpoint& endpoint, const AtomicCall& call) {
  AtomicTransfer& transfer = *transfers_.take();
  transfer.endpoint = &endpoint;
  transfer.target = call.to->rank;
  transfer.form = call.operation.form;
  transfer.reports = call.reports;
  transfer.context = call.context;
  transfer.results = call.results;
  in_order_.push_back(&transfer);
  ++under_way_;
  const std::size_t bytes = bytes_of(call.operation.type);
  if (Recorder* recorder = transport_.recorder()) {
    std::size_t all = 0;
    for (const AtomicTarget& target : call.remote) all += target.count * bytes;
    transfer.recorded = recorder->accessed(ipc::RecordingKind::got, call.to->rank, message::one_piece(0, all),
                                           0, endpoint.rail());
  }

  MessageHeader header;
  header.kind = MessageKind::request;
  header.source_endpoint = endpoint.number();
  header.target_endpoint = static_cast<std::uint16_t>(call.to->endpoint);
  header.data = call.data;
  AtomicBody body;
  body.transfer = transfer.id;
  body.form = static_cast<std::uint8_t>(call.operation.form);
  body.type = static_cast<std::uint8_t>(call.operation.type);
  body.op = static_cast<std::uint8_t>(call.operation.op);
  const std::size_t most = elements_of_message(call.operation);
  for (const AtomicTarget& target : call.remote) {
    header.tag = target.key;
    for (std::size_t done = 0; done < target.count; done += body.count) {
      body.count = static_cast<std::uint16_t>(std::min<std::size_t>(most, target.count - done));
      body.address = target.address + done * bytes;
      body.is_last = &target == &call.remote.back() && done + body.count == target.count ? 1 : 0;
      header.has_data = call.has_data && body.is_last != 0 ? 1 : 0;
      std::array<std::byte, sizeof(AtomicBody) + atomic_payload_bytes> message;
      std::size_t length = sizeof(body);
      std::memcpy(message.data(), &body, sizeof(body));
      for (const std::span<const std::byte> from : {call.operands, call.comparands}) {
        if (from.empty()) continue;
        std::memcpy(message.data() + length, from.data() + body.offset, body.count * bytes);
        length += body.count * bytes;
      }
      endpoint.engine().post_control(call.to->rank, header, {message.data(), length});
      ++transfer.pending;
      body.offset += static_cast<std::uint32_t>(body.count * bytes);
    }
  }
  if (transfer.pending == 0) finish(transfer);
}

void Atomics::execute(Endpoint* endpoint, const message::Message& message) {
  const AtomicBody body = decode_atomic({message.payload, message.payload_bytes});
  const AtomicOperation operation{static_cast<AtomicForm>(body.form), static_cast<fi_datatype>(body.type),
                                  static_cast<fi_op>(body.op)};
  transport_.engine(message.rail).charge_receive(message);
  const std::size_t bytes = body.count * bytes_of(operation.type);
  const std::uint64_t key = message.header.tag;
  std::array<std::byte, sizeof(AtomicAnswer) + atomic_payload_bytes> reply;
  AtomicAnswer answer{.transfer = body.transfer, .offset = body.offset};
  std::uint64_t address = 0;
  answer.fault = ipc::AccessFault::unknown_key;
  if (endpoint != nullptr) {
    answer.fault = client_.regions().find(endpoint->domain().number(), key, body.address, bytes,
                                          region_access(needed_access(operation)), address);
  }
  const bool done = answer.fault == ipc::AccessFault::none;
  const bool fetches = done && operation.form != AtomicForm::write;
  if (done) {
    const bool has_operands = operation.op != FI_ATOMIC_READ;
    const std::byte* operands = has_operands ? message.payload + sizeof(AtomicBody) : nullptr;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of the program's memory, which it has registered
    apply(operation,
          {.target = reinterpret_cast<std::byte*>(address),
           .operands = operands,
           .comparands = operation.form == AtomicForm::compare ? operands + bytes : nullptr,
           .results = fetches ? reply.data() + sizeof(answer) : nullptr},
          body.count);
    if (body.is_last != 0) endpoint->accessed(counted_kinds(operation), key);
    if (message.header.has_data != 0)
      endpoint->received_data(FI_ATOMIC | remote_kind(operation.form), bytes, message.header.data);
  }
  std::memcpy(reply.data(), &answer, sizeof(answer));
  MessageHeader header;
  header.kind = MessageKind::answer;
  header.source_endpoint = message.header.target_endpoint;
  header.target_endpoint = message.header.source_endpoint;
  transport_.engine(message.rail)
      .post_control(message.source, header, {reply.data(), sizeof(answer) + (fetches ? bytes : 0)});
}

void Atomics::answered(const message::Message& message) {
  const AtomicAnswer answer = decode_answer({message.payload, message.payload_bytes});
  AtomicTransfer* transfer = transfers_.find(answer.transfer);
  if (transfer == nullptr || transfer->pending == 0 || transfer->target != message.source)
    throw MalformedMessage("an answer to no atomic operation that was asked for");
  transport_.engine(message.rail).charge_receive(message);
  if (transfer->fault == ipc::AccessFault::none) transfer->fault = answer.fault;
  if (transfer->endpoint != nullptr) {
    message::scatter(transfer->results, answer.offset, message.payload + sizeof(answer),
                     message.payload_bytes - sizeof(answer));
  }
  if (--transfer->pending == 0) finish(*transfer);
}

void Atomics::finish(AtomicTransfer& transfer) {
  if (transfer.endpoint == nullptr) {
    transport_.note_end(transfer.recorded);
  } else {
    CompletionEntry entry;
    entry.recorded = transfer.recorded;
    entry.context = transfer.context;
    entry.flags = FI_ATOMIC | (transfer.form == AtomicForm::write ? FI_WRITE : FI_READ);
    entry.fail(transfer.fault);
    if (!transport_.real_gpus().deliver(transfer.results, transfer.results.length)) entry.fail_at_device();
    transfer.endpoint->transmitted(entry, transfer.reports);
  }
  in_order_.remove(&transfer);
  --under_way_;
  transfers_.give_back(&transfer);
}

void Atomics::forget(Endpoint& endpoint) {
  in_order_.for_each([&endpoint](AtomicTransfer* transfer) {
    if (transfer->endpoint == &endpoint) transfer->endpoint = nullptr;
  });
}

}  // namespace apenet::libfabric
