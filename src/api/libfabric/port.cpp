#include "api/libfabric/port.hpp"

#include <rdma/fi_errno.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/log.hpp"

namespace apenet::libfabric {
namespace {

// Unmatched messages of one source that may keep their slots: past it they are copied out, so that a receiver
// that is behind does not starve the sender's arena.
constexpr std::uint32_t kept_slots_per_source = 64;

}  // namespace

Port::Port(ipc::Client& client)
    : client_(client),
      sources_(client.size()),
      recorder_(Recorder::from_environment(client)),
      sender_(*this, client),
      receiver_(*this, client),
      atomics_(*this, client) {}

Port& Port::of(ipc::Client& client) {
  // As Client::instance(): stands for the process, outlives whatever the program opens and closes, and is
  // never destroyed (programs still communicate in exit handlers).
  static std::mutex mutex;
  static auto& ports = *new std::vector<std::pair<ipc::Client*, std::unique_ptr<Port>>>;
  const std::lock_guard<std::mutex> guard(mutex);
  for (const auto& [owner, port] : ports) {
    if (owner == &client) return *port;
  }
  return *ports.emplace_back(&client, std::make_unique<Port>(client)).second;
}

std::uint16_t Port::attach(Endpoint& endpoint, std::uint32_t wanted) {
  if (wanted < ipc::most_endpoints && wanted > endpoints_.size()) endpoints_.resize(wanted, nullptr);
  if (endpoints_.size() >= ipc::most_endpoints)
    throw FabricError(FI_ENOMEM, "fi_endpoint: no number is left for it");
  endpoints_.push_back(&endpoint);
  client_.block().identity.used_provider = 1;
  return static_cast<std::uint16_t>(endpoints_.size() - 1);
}

void Port::detach(Endpoint& endpoint) {
  endpoints_[endpoint.number()] = nullptr;
  sender_.forget(endpoint);
  receiver_.forget(endpoint);
  atomics_.forget(endpoint);
  if (Recorder* recording = recorder()) recording->close();
}

void Port::enabled() {
  if (!client_.join()) {
    throw FabricError(FI_EOPBADSTATE, "fi_enable: this rank has called MPI_Finalize and left the simulation");
  }
  ++enabled_;
}

void Port::disabled() {
  if (--enabled_ == 0) client_.block().identity.closed = client_.block().identity.joined.load();
}

bool Port::progress() {
  client_.charge(std::exchange(later_ps_, 0));
  fill_rings();
  write_wait_note();
  return take(client_.poll());
}

bool Port::progress_visible() {
  return take(client_.visible());
}

bool Port::take(const ipc::Event* event) {
  if (event == nullptr) return false;
  // The event is ours until it is popped, whatever handling it throws.
  struct Pop {
    ipc::Client& client;
    ~Pop() { client.pop(); }
  } const pop{client_};
  try {
    handle(*event);
  } catch (const MalformedMessage& error) {
    report_malformed(error.what());
  }
  return true;
}

bool Port::progress_truthfully() {
  const ipc::Looking looking(client_.progress());
  return progress();
}

void Port::handle(const ipc::Event& event) {
  switch (event.kind) {
    case ipc::EventKind::arrived:
      if (client_.header().needs_credit != 0) taken_from_rings_.emplace_back(event.source, event.bytes);
      take_in_turn(unpack(event));
      return;
    case ipc::EventKind::put_arrived:
      receiver_.put_arrived(event);
      return;
    case ipc::EventKind::sent:
    case ipc::EventKind::remote_done:
    case ipc::EventKind::got:
      sender_.reported(event);
      return;
  }
  throw MalformedMessage("an event of unknown kind");
}

Message Port::unpack(const ipc::Event& event) {
  if (event.source >= sources_.size()) throw MalformedMessage("a message from a rank that does not exist");
  if (event.inline_length > ipc::inline_bytes) throw MalformedMessage("a message longer than its event");
  Message message;
  message.source = event.source;
  message.mailbox_packets = event.mailbox_packets;
  if (event.slot != ipc::no_slot) {
    if (event.slot >= ipc::slots_per_process || event.slot_length > ipc::slot_bytes) {
      throw MalformedMessage("a message in a slot that does not exist");
    }
    message.slot = event.slot;
  }
  try {
    message.header = decode_header({event.inline_data, event.inline_length});
    if (message.slot == ipc::no_slot) {
      message.payload = event.inline_data + sizeof(MessageHeader);
      message.payload_bytes = event.inline_length - sizeof(MessageHeader);
    } else {
      if (event.inline_length != sizeof(MessageHeader)) throw MalformedMessage("a message in two places");
      message.payload = client_.slot_data(event.source, event.slot);
      message.payload_bytes = event.slot_length;
    }
    if (message.slot != ipc::no_slot && is_control(message.header.kind))
      throw MalformedMessage("a message of the library in a slot");
    if (is_ready(message.header.kind))
      static_cast<void>(decode_ready({message.payload, message.payload_bytes}));
    const auto ahead = static_cast<std::int32_t>(message.header.sequence - sources_[message.source].next_in);
    if (ahead < 0) throw MalformedMessage("a message that has come before");
  } catch (const MalformedMessage&) {
    return_slot(message);
    throw;
  }
  return message;
}

void Port::take_in_turn(const Message& message) {
  Source& source = sources_[message.source];
  if (message.header.sequence != source.next_in) {
    source.held.push_back(store(message));
    return;
  }
  ++source.next_in;
  deliver(message);
  StoredMessage* held = source.held.front();
  while (held != nullptr) {
    if (held->message.header.sequence != source.next_in) {
      held = source.held.next(held);
      continue;
    }
    ++source.next_in;
    source.held.remove(held);
    deliver(unstore(*held));
    release(held);
    held = source.held.front();
  }
}

void Port::deliver(const Message& message) {
  Endpoint* target = endpoint(message.header.target_endpoint);
  switch (message.header.kind) {
    case MessageKind::clear:
      return sender_.cleared(message);
    case MessageKind::atomic:
      return atomics_.execute(target, message);
    case MessageKind::atomic_answer:
      return atomics_.answered(message);
    case MessageKind::read_notice:
      return receiver_.read_from(target, message);
    default:
      break;
  }
  if (target == nullptr) {
    receiver_.discard(message);
    return;
  }
  receiver_.arrived(*target, message);
}

StoredMessage* Port::store(const Message& message) {
  StoredMessage* stored = stored_.take();
  stored->message = message;
  Source& source = sources_[message.source];
  if (message.slot != ipc::no_slot && source.slots_kept < kept_slots_per_source) {
    ++source.slots_kept;
    return stored;
  }
  std::byte* room = stored->small;
  if (message.payload_bytes > sizeof(stored->small)) {
    stored->copy = std::make_unique<std::byte[]>(message.payload_bytes);
    room = stored->copy.get();
  }
  if (message.payload_bytes > 0) std::memcpy(room, message.payload, message.payload_bytes);
  stored->message.payload = room;
  return_slot(message);
  stored->message.slot = ipc::no_slot;
  return stored;
}

Message Port::unstore(StoredMessage& stored) {
  const Message message = stored.message;
  if (message.slot != ipc::no_slot) --sources_[message.source].slots_kept;
  stored.message.slot = ipc::no_slot;
  return message;
}

void Port::release(StoredMessage* stored) {
  stored_.give_back(stored);
}

void Port::post_control(std::uint32_t target, MessageHeader header, std::span<const std::byte> body) {
  header.sequence = next_sequence(target);
  ipc::Request request;
  request.target = target;
  request.verb = ipc::RequestVerb::send;
  request.inline_length = static_cast<std::uint32_t>(sizeof(header) + body.size());
  request.bytes = request.inline_length;
  if (request.bytes <= client_.header().max_pio_bytes) request.flags = ipc::from_cpu;
  std::memcpy(request.inline_data, &header, sizeof(header));
  if (!body.empty()) std::memcpy(request.inline_data + sizeof(header), body.data(), body.size());
  client_.charge(client_.costs().send_ps);
  client_.post(request);
  client_.charge_further_packets(request.target, request.bytes);
}

// A ring's place is free again when the library has taken the message out of it. The processor's time for
// that is after_receive, which is charged with the receive.
void Port::fill_rings() {
  for (const auto& [source, bytes] : taken_from_rings_) post_credit(source, bytes);
  taken_from_rings_.clear();
}

void Port::give_credit(std::uint32_t source, std::int64_t bytes) {
  if (client_.header().needs_credit == 0) return;
  const std::int64_t most = client_.header().max_message_bytes;
  for (; bytes > 0; bytes -= most) {
    client_.charge(client_.costs().after_receive_ps);
    post_credit(source, std::min(bytes, most));
  }
}

void Port::post_credit(std::uint32_t source, std::int64_t bytes) {
  ipc::Request request;
  request.target = source;
  request.verb = ipc::RequestVerb::credit;
  request.bytes = bytes;
  client_.post(request);
}

void Port::report_malformed(const char* what) {
  const std::string text = "rank " + std::to_string(client_.rank()) + " received " + what;
  warn(text);
  for (Endpoint* endpoint : endpoints_) {
    if (endpoint == nullptr || endpoint->receive_cq() == nullptr) continue;
    CompletionEntry entry;
    entry.flags = FI_RECV;
    entry.error = FI_EIO;
    entry.detail = static_cast<int>(ErrorDetail::malformed);
    endpoint->receive_cq()->push(entry);
    return;
  }
  throw std::runtime_error(text);
}

// A process may stop in the poll that follows: what it then waits for is in its block, for the report of a
// deadlock.
void Port::write_wait_note() {
  ipc::WaitNote& note = client_.block().note;
  note.receives = receiver_.waiting();
  if (const Receive* oldest = receiver_.oldest()) {
    note.receive_source = oldest->source == any_source ? -1 : static_cast<std::int32_t>(oldest->source);
    note.receive_tag = oldest->tag;
  }
  note.sends = sender_.unfinished() + atomics_.under_way();
  if (const Transfer* oldest = sender_.oldest()) {
    note.send_target = static_cast<std::int32_t>(oldest->target);
  } else if (const AtomicTransfer* atomic = atomics_.oldest()) {
    note.send_target = static_cast<std::int32_t>(atomic->target);
  }
}

}  // namespace apenet::libfabric
