#include "runtime/scheduler/delivery.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "machine/message_requests.hpp"
#include "machine/rails.hpp"
#include "message/wire.hpp"
#include "runtime/ipc/program_tags.hpp"
#include "runtime/scheduler/rank_error.hpp"

namespace apenet {
namespace {

constexpr std::uint32_t most_slots_of_receivers = ipc::slots_per_process / 2;
// Slots that a process may have taken and not posted yet: those of one message, and as many that it wants.
constexpr std::uint32_t slots_in_hand = 2 * message::most_eager_bytes / message::slot_bytes;

}  // namespace

Delivery::Delivery(SharedModel& model, std::uint32_t job, ProcessId first_process, SharedMemory& shared,
                   ProcessMemory& memory, RankTable& ranks, Exchange& exchange, LowerBounds& bounds)
    : simulation_(model.simulation()),
      machine_(model.machine()),
      first_process_(first_process),
      shared_(shared),
      memory_(memory),
      ranks_(ranks),
      exchange_(exchange),
      bounds_(bounds),
      offers_(ranks.size()),
      route_orders_(model.simulation(), model.machine(), first_process, ranks.size(), memory,
                    [this](std::uint32_t rank, const ipc::Request& request, ipc::AccessFault fault) {
                      tell_answered(rank, request, fault);
                    }),
      sent_bytes_(ranks.size()) {
  for (std::uint8_t rail = 0; rail < rail_count(machine_.description()); ++rail) {
    const MachineDescription alone = rail_alone(machine_.description(), rail);
    const auto costs = [](const message::SoftwareCosts& software) -> LayerCosts {
      return {software.send_packet, software.after_receive.ps()};
    };
    rail_costs_.push_back({costs(alone.mpi_software), costs(alone.card_software)});
  }
  model.set_sink(job, *this);
}

std::vector<LinkUse> Delivery::link_use() const {
  std::vector<LinkUse> links = machine_.link_use();
  for (std::size_t i = 0; i < startup_link_use_.size(); ++i) {
    links[i].packets -= startup_link_use_[i].packets;
    links[i].wire_bytes -= startup_link_use_[i].wire_bytes;
    links[i].busy = links[i].busy - startup_link_use_[i].busy;
  }
  return links;
}

std::vector<PortUse> Delivery::port_use() const {
  std::vector<PortUse> ports = machine_.port_use();
  for (std::size_t i = 0; i < startup_port_use_.size(); ++i) {
    const PortUse& before = startup_port_use_[i];
    ports[i].packets -= before.packets;
    if (before.waited != Time::never()) ports[i].waited -= before.waited;
    for (std::size_t port = 0; port < before.busy.size(); ++port) ports[i].busy[port] -= before.busy[port];
  }
  return ports;
}

void Delivery::begin_ip(SharedModel& model, IpNetwork::Setup setup) {
  const ProcessId first_kernel = setup.first_kernel;
  const auto count = [this](std::int64_t bytes) {
    ++totals_.messages;
    ++totals_.rail_messages[0];
    totals_.bytes += static_cast<std::uint64_t>(bytes);
  };
  ip_ = std::make_unique<IpNetwork>(
      IpNetwork::Run{simulation_, machine_, memory_, [this] { return Time::from_ps(ranks_.epoch_ps()); },
                     [this](const IpNetwork::Answer& given) { tell_socket_answer(given); }, count},
      std::move(setup));
  model.set_kernels(first_kernel, [this](const Completion& completion) { complete_ip(completion); });
}

void Delivery::complete_ip(const Completion& completion) {
  hash_.record(completion_record(completion, Time::from_ps(ranks_.epoch_ps()), completion.source,
                                 completion.process, 0));
  if (!has_ended_) ip_->complete(completion);
}

void Delivery::tell_socket_answer(const IpNetwork::Answer& given) {
  ipc::Event event = event_now(ipc::EventKind::got, given.request);
  event.source = given.rank;
  event.inline_length = sizeof given.answer;
  std::memcpy(event.inline_data, &given.answer, sizeof given.answer);
  deliver(given.rank, {event, {}});
}

bool Delivery::post(std::uint32_t rank, const ipc::Request& request) {
  if (request.verb == ipc::RequestVerb::release) {
    release(rank, request);
    return false;
  }
  ranks_.note_activity();
  if (request.verb == ipc::RequestVerb::routes) {
    const Time reaches = Time::from_ps(request.time_ps + bounds_.lookahead_ps());
    route_orders_.post(rank, request, std::max(reaches, simulation_.now()));
    count_under_way();
    return false;
  }
  if (request.verb == ipc::RequestVerb::socket) {
    if (!ip_ || !IpNetwork::is_valid(request)) throw RankError(rank, "wrote an invalid socket call");
    ip_->post(rank, request);
    return false;
  }
  if (request.verb == ipc::RequestVerb::send) offers_.note(rank, request);
  if (request.verb == ipc::RequestVerb::put) offers_.check(rank, request);
  if (is_outside_) {
    post_outside(rank, request);
    return true;
  }
  const LayerCosts& costs = rail_costs_[request.rail].of(request.interface);
  Descriptor descriptor = descriptor_of(request, first_process_ + rank, first_process_ + request.target,
                                        machine_, costs.packet_interval);
  const bool is_credit = descriptor.verb == Verb::credit;  // reports nothing and moves nothing
  descriptor.message = is_credit ? request.message : pending_.add(rank, request);
  count_under_way();
  std::int64_t when_ps = request.time_ps;
  if (when_ps + bounds_.lookahead_ps() < simulation_.now().ps()) {
    when_ps = simulation_.now().ps() - bounds_.lookahead_ps();
    ++totals_.late_posts;
  }
  if (ranks_.started() && !is_credit) {
    if (machine_.capabilities(request.rail).translates_addresses && uses_early_memory(rank, request))
      ++totals_.early_buffers;
    ++totals_.messages;
    ++totals_.rail_messages[request.rail];
    totals_.bytes += static_cast<std::uint64_t>(request.bytes);
    const bool is_get = request.verb == ipc::RequestVerb::get;
    sent_bytes_[is_get ? request.target : rank][is_get ? rank : request.target] +=
        static_cast<std::uint64_t>(request.bytes);
  } else if (!is_credit) {
    ++totals_.startup_messages;
  }
  try {
    machine_.post(Time::from_ps(when_ps), descriptor);
  } catch (const std::invalid_argument& refusal) {
    throw RankError(rank, std::string("posted a request that its card does not support: ") + refusal.what());
  }
  return true;
}

// In the order of a message within a node (Machine). A rank gets its events in the order of their times.
void Delivery::post_outside(std::uint32_t rank, const ipc::Request& request) {
  const auto wants = [&](std::uint8_t flag) { return (request.flags & flag) != 0; };
  const bool is_get = request.verb == ipc::RequestVerb::get;
  const bool is_send = request.verb == ipc::RequestVerb::send;
  if (request.verb == ipc::RequestVerb::credit) return;  // no card has a ring in use
  const std::uint64_t message = pending_.add(rank, request);
  ++totals_.startup_messages;
  latest_outside_ps_ = std::max(latest_outside_ps_, request.time_ps + bounds_.lookahead_ps());
  const auto tell = [&](CompletionKind kind, std::uint32_t process) {
    complete({.kind = kind,
              .process = process,
              .source = rank,
              .message = message,
              .time = Time::from_ps(latest_outside_ps_)});
  };
  if (is_get && wants(ipc::lock)) execute(rank, message);
  if (!is_send) deliver_payload(rank, message);
  if (is_get) {
    tell(CompletionKind::got, rank);
  } else if (is_send || wants(ipc::notify_target)) {
    tell(CompletionKind::arrived, request.target);
  }
  if (is_get && wants(ipc::notify_target)) tell(CompletionKind::served, request.target);
  if (wants(ipc::want_local)) tell(CompletionKind::sent, rank);
  if (!is_get && wants(ipc::want_remote)) tell(CompletionKind::remote_done, rank);
}

bool Delivery::uses_early_memory(std::uint32_t rank, const ipc::Request& request) const {
  if (request.verb != ipc::RequestVerb::put && request.verb != ipc::RequestVerb::get) return false;
  const auto is_early = [&](std::uint32_t owner, std::uint64_t address) {
    const ipc::Identity& identity = shared_.block(owner).identity;
    return address >= identity.early_begin && address < identity.early_end;
  };
  return is_early(rank, request.local_address) || is_early(request.target, request.remote_address);
}

void Delivery::complete(const Completion& completion) {
  PendingRequest& pending = pending_.at(completion.message);
  const ipc::Request& request = pending.request;
  if (has_ended_) {
    if (completion.mailbox_packets > 0) give_back(completion.process, completion.time.ps(), request.rail);
    --pending.completions_due;
    return settle(completion.message);
  }
  if (ranks_.started()) {
    hash_.record(completion_record(completion, Time::from_ps(ranks_.epoch_ps()), pending.rank, request.target,
                                   request.bytes));
  }
  ipc::Event event;
  event.time_ps = completion.time.ps();
  event.message = request.message;
  event.source = pending.rank;
  event.kind = event_kind(completion.kind, request.verb);
  event.bytes = request.bytes;
  event.immediate = request.immediate;
  event.mailbox_packets = completion.mailbox_packets;
  event.rail = request.rail;
  event.interface = request.interface;
  if (event.kind == ipc::EventKind::arrived) {
    event.slot = request.slot;
    event.slot_length = request.slot_length;
    event.inline_length = request.inline_length;
    std::memcpy(event.inline_data, request.inline_data, request.inline_length);
  }
  const bool is_lock = (request.flags & ipc::lock) != 0;
  if (event.kind == ipc::EventKind::served && is_lock && pending.fault == ipc::AccessFault::none) {
    event.inline_length = message::lock_bytes;
    std::memcpy(event.inline_data, pending.staging.data(), message::lock_bytes);
  }
  if (event.kind == ipc::EventKind::sent && request.verb == ipc::RequestVerb::put)
    pending_.stage(pending, memory_);
  event.key = request.key;
  // A card that names memory by its address alone says where the bytes lie.
  const bool has_address = request.interface != ipc::Interface::libfabric && request.key == 0;
  if (event.kind == ipc::EventKind::put_arrived && has_address) event.key = request.remote_address;
  event.fault = pending.fault;
  // Taking a message out of a mailbox frees its place.
  const bool no_reply =
      event.kind == ipc::EventKind::arrived && request.no_reply != 0 && event.mailbox_packets == 0;
  if (event.kind == ipc::EventKind::arrived) pending.has_arrived = true;
  deliver(completion.process, {event, std::exchange(pending.payload, {})}, no_reply);
  --pending.completions_due;
  settle(completion.message);
}

void Delivery::settle(std::uint64_t message) {
  pending_.settle(message);
  count_under_way();
}

void Delivery::end() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].state != RankState::finished) give_back_untaken(rank);
  }
  has_ended_ = true;
}

void Delivery::deliver_payload(ProcessId /*source*/, std::uint64_t message) {
  PendingRequest& pending = pending_.at(message);
  if (!pending.payload_due) return;
  if (has_ended_) {
    pending.payload_due = false;
    return settle(message);
  }
  const ipc::Request& request = pending.request;
  if ((request.flags & ipc::lock) == 0) permit(pending, shared_.regions(request.target));
  pending_.move_bytes(pending, memory_);
  if (pending.fault != ipc::AccessFault::none) {
    if (++totals_.failed_accesses == 1)
      totals_.first_failed_access = failed_access(pending, shared_.regions(request.target));
    report_refusal(pending);
  }
  settle(message);
}

void Delivery::execute(ProcessId /*source*/, std::uint64_t message) {
  if (has_ended_) return;
  PendingRequest& pending = pending_.at(message);
  permit(pending, shared_.regions(pending.request.target));
  execute_lock(pending, memory_);
}

// The report takes no time of the model's: it is not a packet of the card.
void Delivery::report_refusal(const PendingRequest& pending) {
  const ipc::Request& request = pending.request;
  const bool is_reported = (request.flags & ipc::want_remote) != 0;
  if (request.interface == ipc::Interface::libfabric || request.verb != ipc::RequestVerb::put || is_reported)
    return;
  ipc::Event event = event_now(ipc::EventKind::refused, request);
  event.source = request.target;
  event.key = request.key;
  event.fault = pending.fault;
  deliver(pending.rank, {event, {}});
}

void Delivery::tell_answered(std::uint32_t rank, const ipc::Request& request, ipc::AccessFault fault) {
  count_under_way();
  ipc::Event event = event_now(ipc::EventKind::got, request);
  event.source = rank;
  event.fault = fault;
  deliver(rank, {event, {}});
}

ipc::Event Delivery::event_now(ipc::EventKind kind, const ipc::Request& request) const {
  ipc::Event event;
  event.time_ps = simulation_.now().ps();
  event.message = request.message;
  event.kind = kind;
  event.bytes = request.bytes;
  event.immediate = request.immediate;
  event.rail = request.rail;
  event.interface = request.interface;
  return event;
}

void Delivery::deliver(std::uint32_t rank, OverflowEvent delivered, bool no_reply) {
  const ipc::Event& event = delivered.event;
  // Not the receiver, whose clock would pass the end, but whoever has posted so late.
  if (event.time_ps >= ipc::end_of_time_ps)
    throw EndOfTime(event.kind == ipc::EventKind::refused ? rank : event.source);
  Rank& known = ranks_.at(rank);
  if (known.state == RankState::finished) {
    drop(rank, delivered);
    if (event.mailbox_packets > 0) give_back(rank, event.time_ps, event.rail);
    return;
  }
  const std::int64_t time_ps = event.time_ps;
  if (known.events == 0) known.first_event_ps = time_ps;
  if (exchange_.has_room(rank)) {
    put(rank, delivered);
    ++known.events;
  } else {
    known.overflow.push_back(std::move(delivered));
  }
  ranks_.note_activity();
  if (known.state != RankState::awaiting_event || known.acts_on_ps != never_ps) return;
  if (no_reply && known.events < known.least_events) return;
  known.acts_on_ps = time_ps;
  bounds_.lower_model_bound(rank);
}

// Receivers may keep the slots that they get. So they get no more than half of a sender's, and
// hold_payloads() can always free the others.
void Delivery::put(std::uint32_t rank, OverflowEvent& delivered) {
  ipc::Event& event = delivered.event;
  if (delivered.payload.is_held()) {
    payloads_.take(event.source, delivered.payload, exchange_.next_event_payload(rank));
    event.slot = exchange_.next_event_place(rank);
  } else if (event.slot != ipc::no_slot && exchange_.slots_in_use(event.source) > most_slots_of_receivers) {
    std::memcpy(exchange_.next_event_payload(rank), shared_.slot(event.source, event.slot),
                event.slot_length);
    exchange_.free_slot(event.source, event.slot);
    event.slot = exchange_.next_event_place(rank);
  }
  exchange_.put(rank, event);
}

void Delivery::hold_payloads(std::uint32_t rank) {
  if (exchange_.slots_in_use(rank) < ipc::slots_per_process - slots_in_hand) return;
  const auto hold = [&](std::uint32_t& slot, std::uint32_t bytes, HeldPayload& payload) {
    if (slot == ipc::no_slot) return;
    if (bytes > 0) payload = payloads_.keep(rank, {shared_.slot(rank, slot), bytes});
    exchange_.free_slot(rank, slot);
    slot = ipc::no_slot;
  };
  pending_.for_each_send([&](PendingRequest& pending) {
    if (pending.rank == rank) hold(pending.request.slot, pending.request.slot_length, pending.payload);
  });
  for (std::uint32_t reader = 0; reader < ranks_.size(); ++reader) {
    for (OverflowEvent& waiting : ranks_.at(reader).overflow) {
      if (waiting.event.source == rank) hold(waiting.event.slot, waiting.event.slot_length, waiting.payload);
    }
  }
}

// Notes a message of the program that reaches a process that has left, or has been left there.
void Delivery::note_untaken(std::uint32_t rank, const ipc::Event& event) {
  if (event.kind == ipc::EventKind::arrived && event.interface == ipc::Interface::libfabric &&
      event.inline_length <= sizeof event.inline_data)
    note_untaken(rank, event.source, {event.inline_data, event.inline_length});
}

void Delivery::note_untaken(std::uint32_t rank, std::uint32_t source,
                            std::span<const std::byte> inline_data) {
  message::MessageHeader header;
  if (!ranks_.started() || inline_data.size() < sizeof header || source >= ranks_.size()) return;
  std::memcpy(&header, inline_data.data(), sizeof header);
  if (message::is_tagged(header.kind) && ipc::is_of_program(header.tag))
    untaken_.add(rank, {.count = 1, .source = source, .tag = header.tag});
}

void Delivery::note_under_way() {
  pending_.for_each_send([this](const PendingRequest& pending) {
    const ipc::Request& request = pending.request;
    if (request.interface == ipc::Interface::libfabric)
      note_untaken(request.target, pending.rank, {request.inline_data, request.inline_length});
  });
}

void Delivery::drop(std::uint32_t rank, OverflowEvent& untaken) {
  note_untaken(rank, untaken.event);
  payloads_.drop(untaken.payload);
  if (untaken.event.slot != ipc::no_slot) exchange_.free_slot(untaken.event.source, untaken.event.slot);
}

void Delivery::give_back_untaken(std::uint32_t rank) {
  Rank& known = ranks_.at(rank);
  const auto untaken = [&](const ipc::Event& event, std::uint32_t mailbox_packets, std::uint8_t rail) {
    note_untaken(rank, event);
    if (mailbox_packets > 0) give_back(rank, known.clock_ps, rail);
  };
  exchange_.for_untaken(rank, untaken);
  for (OverflowEvent& waiting : known.overflow) {
    drop(rank, waiting);
    if (waiting.event.mailbox_packets > 0) give_back(rank, known.clock_ps, waiting.event.rail);
  }
  known.overflow.clear();
  for (std::uint8_t rail = 0; rail < std::uint8_t{ipc::most_rails}; ++rail) {
    for (std::uint32_t left = known.kept[rail]; left > 0; --left) give_back(rank, known.clock_ps, rail);
  }
}

// A process that has left has nothing to release: give_back_untaken() has freed it.
void Delivery::release(std::uint32_t rank, const ipc::Request& request) {
  Rank& known = ranks_.at(rank);
  if (known.state == RankState::finished) return;
  std::uint32_t& kept = known.kept[request.rail];
  if (kept == 0) throw RankError(rank, "released a message of its mailbox that it has not taken");
  --kept;
  ranks_.note_activity();
  give_back(rank, request.time_ps + rail_costs_[request.rail].of(request.interface).after_receive_ps,
            request.rail);
}

// Frees an arrival's place in the card's mailbox.
void Delivery::give_back(std::uint32_t rank, std::int64_t when_ps, std::uint8_t rail) {
  machine_.give_back(Time::from_ps(std::max(when_ps, simulation_.now().ps())), first_process_ + rank, rail);
}

void Delivery::take_notice(std::uint32_t rank) {
  Rank& known = ranks_.at(rank);
  exchange_.take_notice(rank, [&](std::int64_t taken_ps, std::uint8_t rail, ipc::Interface interface) {
    known.lower_horizon(taken_ps + bounds_.lookahead_ps());
    if (message::keeps_places(interface)) {
      ++known.kept[rail];
      return;
    }
    give_back(rank, taken_ps + rail_costs_[rail].of(interface).after_receive_ps, rail);
  });
  for (; !known.overflow.empty() && exchange_.has_room(rank); known.overflow.pop_front())
    put(rank, known.overflow.front());
  known.events = exchange_.events(rank);
  if (known.events > 0) known.first_event_ps = exchange_.first_event_ps(rank);
}

}  // namespace apenet
