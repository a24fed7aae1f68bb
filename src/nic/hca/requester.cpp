#include "nic/hca/requester.hpp"

#include <algorithm>

#include "kernel/check.hpp"

namespace apenet::hca {

namespace {

// Upper byte of bus tags and event arguments.
enum RequesterTag : std::uint8_t {
  doorbell_written,  // which: doorbell_name()
  entry_stored,
  entry_written,
  entry_fetched,
  entry_processed,    // which: connection
  not_ready_is_over,  // which: connection
  response_written,   // which: index in Cards::being_written
  completion_written  // which: message
};

// A doorbell's connection and message. A machine has no memory for so many messages at once.
constexpr unsigned connection_bits = 28;
constexpr unsigned message_bits = 28;
static_assert(ConnectionTable::max_connections <= std::uint64_t{1} << connection_bits);

constexpr std::uint64_t doorbell_name(ConnectionId connection, MessageId message) {
  APENET_CHECK(message >> message_bits == 0, "message %u at once", message);
  return std::uint64_t{message} << connection_bits | connection;
}
constexpr ConnectionId connection_of_doorbell(std::uint64_t which) {
  return static_cast<ConnectionId>(which & ((std::uint64_t{1} << connection_bits) - 1));
}
constexpr MessageId message_of_doorbell(std::uint64_t which) {
  return static_cast<MessageId>(which >> connection_bits);
}

// Compares sequence numbers that wrap around.
constexpr bool is_below(std::uint32_t number, std::uint32_t bound) {
  return static_cast<std::int32_t>(bound - number) > 0;
}

}  // namespace

Requester::Requester(Card& card, ContextCache& contexts, Transmitter& transmitter)
    : card_(card), contexts_(contexts), transmitter_(transmitter) {}

Work Requester::make_work(MessageId id, SendQueue& queue) {
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  Work work;
  work.id = id;
  work.number = queue.posted++;
  work.is_read = descriptor.verb == Verb::get;
  work.has_payload = descriptor.from_cpu && !work.is_read;
  work.is_signalled = work.is_read || wants_sent(descriptor) || wants_remote_done(descriptor);
  ++queue.since_asked;
  // choose_fifo() waits for it.
  const bool is_awaited = work.is_signalled || card_.all.fifos.is_least_loaded();
  work.asks_ack =
      !work.is_read && (is_awaited || queue.since_asked >= card_.all.description.messages_per_ack);
  if (work.asks_ack) queue.since_asked = 0;
  return work;
}

std::int64_t Requester::entry_bytes(const Work& work) const {
  const std::int64_t payload = work.has_payload ? card_.all.messages.descriptor(work.id).bytes : 0;
  return card_.all.description.wqe_bytes + payload;
}

bool Requester::has_place(const SendQueue& queue) const {
  return queue.outstanding < card_.all.description.send_queue_entries &&
         queue.on_card_count < card_.all.description.wqe_prefetch_entries;
}

void Requester::doorbell(MessageId message) {
  const Descriptor& descriptor = card_.all.messages.descriptor(message);
  const ConnectionId id = card_.all.connections.of(descriptor);
  SendQueue& queue = card_.all.connections[id].send;
  const Work work = make_work(message, queue);
  const Description& card = card_.all.description;
  const bool is_blueflame =
      work.has_payload ? descriptor.bytes <= card.blueflame_bytes : card.is_blueflame_for_all;
  if (is_blueflame && queue.in_host_memory.empty() && has_place(queue)) {
    take_to_card(queue, work);
    store_entry({id, work.number}, entry_bytes(work));
    return;
  }
  if (queue.posted - queue.retired > card_.all.description.send_queue_entries)
    ++card_.all.counters.posts_held_back;
  card_.all.state.works.push(queue.in_host_memory, work);
  card_.written_by_processor(card_.all.description.doorbell_bytes, *this,
                             make_tag(doorbell_written, doorbell_name(id, message)));
}

// The doorbell's time is that of the entry's first line. The other lines leave the processor's
// write-combining buffers one after another, and the card begins with the last one. Entries keep their order.
void Requester::store_entry(const EntryName& name, std::int64_t bytes) {
  constexpr std::int64_t line_bytes = 64;
  const Time interval = card_.all.description.blueflame_interval;
  if (interval == Time::zero()) {
    entry_stored_now(name, bytes);
    return;
  }
  state_.stored_at = std::max(state_.stored_at, card_.now() + interval * ((bytes - 1) / line_bytes));
  card_.all.state.entries.push(state_.stored_entries, name);
  card_.all.simulation.schedule(card_.state.source, state_.stored_at, *this,
                                make_tag(entry_stored, static_cast<std::uint64_t>(bytes)));
}

void Requester::entry_stored_now(const EntryName& name, std::int64_t bytes) {
  card_.all.state.entries.push(state_.written_entries, name);
  card_.written_by_processor(bytes, *this, make_tag(entry_written, 0));
}

void Requester::take_to_card(SendQueue& queue, const Work& work) {
  card_.all.state.works.push(queue.on_card, work);
  ++queue.on_card_count;
  ++queue.outstanding;
}

void Requester::fetch_entries(ConnectionId id) {
  SendQueue& queue = card_.all.connections[id].send;
  while (queue.known > 0 && has_place(queue)) {
    --queue.known;
    const Work work = card_.all.state.works.pop(queue.in_host_memory);
    take_to_card(queue, work);
    card_.all.messages.enter(work.id, Stage::bus);
    card_.all.state.entries.push(state_.fetched_entries, {id, work.number});
    card_.bus.read(entry_bytes(work), *this, make_tag(entry_fetched, 0));
  }
}

void Requester::entry_granted(const EntryName& name, const BusGrant& grant) {
  SendQueue& queue = card_.all.connections[name.connection].send;
  const std::uint32_t first = card_.all.state.works.front(queue.on_card).number;
  Work& work = card_.all.state.works.at(queue.on_card, name.number - first);
  work.present_at = grant.end;
  if (tag_what(grant.tag) == entry_written) {
    card_.all.messages.enter_doorbell(work.id, grant.ready, grant.begin);
  } else {
    card_.all.messages.enter_bus(work.id, grant.ready, grant.begin);
  }
  card_.all.messages.enter(work.id, Stage::card_queue, grant.end);
  advance(name.connection);
}

// Starts the next step for the first entry on the card, if possible.
void Requester::advance(ConnectionId id) {
  SendQueue& queue = card_.all.connections[id].send;
  if (queue.is_held || queue.is_ready || queue.is_processing || queue.on_card.empty()) return;
  Work& first = card_.all.state.works.front(queue.on_card);
  if (first.present_at == Time::never()) return;
  const Description& card = card_.all.description;
  if (!first.is_processed) {
    queue.is_processing = true;
    const Time start = std::max({card_.now(), first.present_at, state_.engine_free_at});
    state_.engine_free_at = start + card.wqe_interval;
    engine_.take(first.present_at, start, card.wqe_interval);
    const bool is_cached = contexts_.use(id, true);
    if (!is_cached) ++card_.all.counters.context_misses;
    const Time miss = is_cached ? Time::zero() : card.context_miss;
    card_.all.messages.enter(first.id, Stage::translation, start);
    card_.all.messages.enter(first.id, Stage::card, start + miss);
    card_.all.simulation.schedule(card_.state.source, start + miss + card.wqe_latency, *this,
                                  make_tag(entry_processed, id));
    return;
  }
  if (first.is_read && queue.reads_issued - queue.reads_completed == card.outstanding_rdma_reads) {
    if (!first.is_held_back) ++card_.all.counters.reads_held_back;
    first.is_held_back = true;
    return;
  }
  if (card_.all.fifos.is_least_loaded()) [[unlikely]]
    choose_fifo(queue, first, card_.all.connections[id].channel);
  queue.is_ready = true;
  transmitter_.ready({id, false});
}

// Payload of the first entry on the card that has not left. A read's request has none.
std::int64_t Requester::unsent_bytes(const SendQueue& queue) const {
  const Work& first = card_.all.state.works.front(queue.on_card);
  if (first.is_read) return 0;
  const std::int64_t sent = queue.next_packet * card_.all.description.mtu_bytes;
  return std::max(std::int64_t{0}, card_.all.messages.descriptor(first.id).bytes - sent);
}

// The queue pair may take another FIFO only when none of its packets can be in the network: all entries
// before the first one are retired, and this one has not been sent and refused. Packets could otherwise
// overtake each other.
void Requester::choose_fifo(SendQueue& queue, const Work& first, std::uint16_t lane) {
  if (queue.unacknowledged.empty() && !is_below(first.number, queue.unsent))
    queue.fifo = transmitter_.least_loaded(lane);
  transmitter_.add_waiting(queue.fifo, unsent_bytes(queue));
}

void Requester::processed(ConnectionId id) {
  SendQueue& queue = card_.all.connections[id].send;
  queue.is_processing = false;
  card_.all.state.works.front(queue.on_card).is_processed = true;
  card_.all.messages.enter(card_.all.state.works.front(queue.on_card).id, Stage::card_queue);
  advance(id);
}

bool Requester::has_packet(ConnectionId id) const {
  return card_.all.connections[id].send.is_ready;
}

PacketSource::Next Requester::next_packet(ConnectionId id) const {
  const Connection& connection = card_.all.connections[id];
  const Description& card = card_.all.description;
  const Work& work = card_.all.state.works.front(connection.send.on_card);
  const Descriptor& descriptor = card_.all.messages.descriptor(work.id);
  const std::uint32_t sequence = connection.send.next_packet;
  const bool is_last = work.is_read || sequence + 1 == packets_of(card, descriptor.bytes);
  const bool is_write = descriptor.verb == Verb::put;
  std::int64_t extended = 0;
  if (work.is_read || (is_write && sequence == 0)) extended += card.reth_bytes;
  if (is_write && is_last && descriptor.notify_target) extended += card.immediate_bytes;
  Next next;
  Packet& packet = next.packet;
  packet.source = card_.node;
  packet.destination = card_.all.placement.node(connection.target);
  packet.message = encode({.id = work.id,
                           .connection = id,
                           .role = work.is_read ? Role::read_request : Role::request,
                           .asks_ack = work.asks_ack});
  packet.sequence = sequence;
  packet.channel = card_.request_fifo(id);
  packet.last = is_last;
  const std::int64_t payload = work.is_read ? 0 : payload_of(card, descriptor.bytes, sequence);
  set_sizes(packet, card, payload, extended);
  next.read_bytes = work.has_payload ? 0 : payload;
  return next;
}

bool Requester::packet_issued(ConnectionId id) {
  SendQueue& queue = card_.all.connections[id].send;
  Work& first = card_.all.state.works.front(queue.on_card);
  if (card_.all.fifos.is_least_loaded()) [[unlikely]]
    leave_fifo(queue, first);
  ++queue.next_packet;
  if (!first.is_read &&
      queue.next_packet < packets_of(card_.all.description, card_.all.messages.descriptor(first.id).bytes))
    return true;
  if (first.is_read) first.read_number = queue.reads_issued++;
  card_.all.state.works.push(queue.unacknowledged, card_.all.state.works.pop(queue.on_card));
  --queue.on_card_count;
  queue.next_packet = 0;
  queue.is_ready = false;
  fetch_entries(id);
  advance(id);
  return false;
}

// The next packet of the first entry has been taken from the FIFO's backlog.
void Requester::leave_fifo(SendQueue& queue, const Work& first) {
  const std::int64_t bytes = first.is_read ? 0 : card_.all.messages.descriptor(first.id).bytes;
  transmitter_.add_waiting(queue.fifo, -payload_of(card_.all.description, bytes, queue.next_packet));
  if (!is_below(first.number, queue.unsent)) queue.unsent = first.number + 1;
}

void Requester::acknowledged(ConnectionId id, std::uint32_t executed, Time usable) {
  SendQueue& queue = card_.all.connections[id].send;
  if (is_below(queue.acknowledged, executed)) queue.acknowledged = executed;
  retire(id, usable);
}

bool Requester::is_done(const SendQueue& queue, const Work& work) {
  if (work.is_read) return is_below(work.read_number, queue.reads_completed);
  return is_below(work.number, queue.acknowledged) ||
         (!work.asks_ack && is_below(work.number, queue.answered));
}

void Requester::retire(ConnectionId id, Time usable) {
  const Time earliest = std::max(usable, card_.now());
  SendQueue& queue = card_.all.connections[id].send;
  while (!queue.unacknowledged.empty()) {
    const Work& first = card_.all.state.works.front(queue.unacknowledged);
    if (!is_done(queue, first)) break;
    const Work work = card_.all.state.works.pop(queue.unacknowledged);
    --queue.outstanding;
    ++queue.retired;
    if (work.is_signalled) {
      card_.bus.write(Bus::Master::card, card_.all.description.cqe_bytes, earliest, *this,
                      make_tag(completion_written, work.id));
    }
  }
  fetch_entries(id);
  advance(id);
}

// Writes the payload of a read's response. After the last packet the read is complete, and is retired with
// its completion once all older entries are done.
void Requester::response_arrived(const Packet& packet, Time usable) {
  const Header header = header_of(packet);
  const std::int64_t bytes = card_.all.messages.descriptor(header.id).bytes;
  if (bytes > 0) {
    const std::uint32_t index = card_.all.state.being_written.add(packet);
    card_.bus.write(Bus::Master::card, payload_of(card_.all.description, bytes, packet.sequence), usable,
                    *this, make_tag(response_written, index));
  } else {
    card_.all.network.consumed(card_.node, packet);
  }
  if (packet.last) read_completed(header.connection, usable);
}

// A response also acknowledges all requests before the read that did not ask for an acknowledgement of their
// own.
void Requester::read_completed(ConnectionId id, Time usable) {
  SendQueue& queue = card_.all.connections[id].send;
  std::uint64_t place = 0;
  const auto is_this = [&](const Work& work) {
    return work.is_read && work.read_number == queue.reads_completed;
  };
  while (!is_this(card_.all.state.works.at(queue.unacknowledged, place))) ++place;
  queue.answered = card_.all.state.works.at(queue.unacknowledged, place).number;
  ++queue.reads_completed;
  retire(id, usable);
}

void Requester::not_ready(ConnectionId id, Time usable) {
  Connection& connection = card_.all.connections[id];
  rewind(connection);
  connection.send.is_held = true;
  card_.all.messages.enter(connection.receive.refused_id, Stage::receiver_full);
  card_.all.simulation.schedule(card_.state.source,
                                std::max(usable, card_.now()) + card_.all.description.rnr_timer, *this,
                                make_tag(not_ready_is_over, id));
}

// Returns to the refused packet. The target drops everything that was sent after it.
void Requester::rewind(Connection& connection) {
  SendQueue& queue = connection.send;
  QueuePool<Work>& works = card_.all.state.works;
  const ReceiveSide& target = connection.receive;
  SendQueue::Queue before;
  SendQueue::Queue again;
  bool is_behind = false;
  if (queue.is_ready && card_.all.fifos.is_least_loaded())
    transmitter_.add_waiting(queue.fifo, -unsent_bytes(queue));
  while (!queue.unacknowledged.empty()) {
    Work work = works.pop(queue.unacknowledged);
    is_behind = is_behind || work.number == target.received;
    if (is_behind && work.is_read) --queue.reads_issued;
    if (is_behind) {
      work.is_processed = false;
      ++queue.on_card_count;
    }
    works.push(is_behind ? again : before, work);
  }
  while (!queue.on_card.empty()) works.push(again, works.pop(queue.on_card));
  queue.unacknowledged = before;
  queue.on_card = again;
  queue.next_packet = target.refused_packet;
  queue.is_ready = false;
}

void Requester::completed(MessageId id) {
  const Descriptor descriptor = card_.all.messages.descriptor(id);
  if (descriptor.verb == Verb::get) card_.all.messages.delivered(id);
  if (wants_sent(descriptor)) card_.all.messages.sent(id);
  if (wants_remote_done(descriptor)) card_.all.messages.remote_done(id);
}

void Requester::bus_granted(const BusGrant& grant) {
  switch (tag_what(grant.tag)) {
    case entry_written:
      entry_granted(card_.all.state.entries.pop(state_.written_entries), grant);
      break;
    case entry_fetched:
      entry_granted(card_.all.state.entries.pop(state_.fetched_entries), grant);
      break;
    case doorbell_written:
      card_.all.messages.enter_doorbell(message_of_doorbell(tag_which(grant.tag)), grant.ready, grant.begin);
      card_.all.simulation.schedule(card_.state.source, grant.end, *this, grant.tag);
      break;
    default:
      card_.all.simulation.schedule(card_.state.source, grant.end, *this, grant.tag);
      break;
  }
}

void Requester::handle_event(const Event& event) {
  const auto which = static_cast<std::uint32_t>(tag_which(event.argument_a));
  switch (tag_what(event.argument_a)) {
    case doorbell_written: {
      const ConnectionId id = connection_of_doorbell(tag_which(event.argument_a));
      card_.all.messages.enter(message_of_doorbell(tag_which(event.argument_a)), Stage::card_queue);
      ++card_.all.connections[id].send.known;
      fetch_entries(id);
      break;
    }
    case entry_stored:
      entry_stored_now(card_.all.state.entries.pop(state_.stored_entries), std::int64_t{which});
      break;
    case entry_processed:
      processed(which);
      break;
    case not_ready_is_over:
      card_.all.connections[which].send.is_held = false;
      advance(which);
      break;
    case response_written:
      card_.all.network.consumed(card_.node, card_.all.state.being_written.take(which));
      break;
    case completion_written:
      completed(which);
      break;
    default:
      break;
  }
}

}  // namespace apenet::hca
