#include "api/libfabric/transport.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/log.hpp"
#include "message/engine_events.hpp"
#include "runtime/ipc/program_tags.hpp"

template class apenet::message::Engine<apenet::libfabric::Transport>;

namespace apenet::libfabric {
namespace {

void add(ipc::UnreceivedNote& note, const message::Message& message) {
  if (note.count++ != 0) return;
  note.source = static_cast<std::int32_t>(message.source);
  note.tag = message.header.tag;
}

}  // namespace

static_assert(message::Transport<Transport>);

Transport::Transport(ipc::Client& client)
    : client_(client),
      recorder_(Recorder::from_environment(client)),
      atomics_(*this, client),
      real_gpus_(client) {
  for (std::uint8_t rail = 0; rail < client.header().rail_count; ++rail)
    engines_.push_back(std::make_unique<Engine>(*this, stores_, rail));
  const auto take = [](void* transport, const ipc::Event& event) noexcept {
    static_cast<Transport*>(transport)->take(event);
  };
  client.set_consumer(ipc::Interface::libfabric, {take, this});
}

std::uint32_t Transport::accesses_under_way() const {
  std::uint32_t count = atomics_.under_way();
  for (const auto& engine : engines_) count += engine->accesses_under_way();
  return count;
}

Transport& Transport::of(ipc::Client& client) {
  // As Client::instance(): stands for the process, outlives whatever the program opens and closes, and is
  // never destroyed (programs still communicate in exit handlers).
  static std::mutex mutex;
  static auto& transports = *new std::vector<std::pair<ipc::Client*, std::unique_ptr<Transport>>>;
  const std::lock_guard<std::mutex> guard(mutex);
  for (const auto& [owner, transport] : transports) {
    if (owner == &client) return *transport;
  }
  return *transports.emplace_back(&client, std::make_unique<Transport>(client)).second;
}

std::uint16_t Transport::attach(Endpoint& endpoint, std::uint32_t wanted) {
  if (wanted < ipc::most_endpoints && wanted > endpoints_.size()) endpoints_.resize(wanted, nullptr);
  if (endpoints_.size() > ipc::most_endpoints - ipc::interface_count)
    throw FabricError(FI_ENOMEM, "fi_endpoint: no number is left for it");
  endpoints_.push_back(&endpoint);
  client_.block().identity.used_network = 1;
  return static_cast<std::uint16_t>(endpoints_.size() - 1);
}

void Transport::detach(Endpoint& endpoint) {
  note_unreceived();
  note_unreceived_of_collectives(endpoint);
  finish_injected(endpoint);
  endpoints_[endpoint.number()] = nullptr;
  note_left_sends(endpoint);
  endpoint.engine().forget(endpoint);
  atomics_.forget(endpoint);
  if (Recorder* recording = recorder()) recording->close();
}

// The sends are over for the library, which may have none under way that it knows of: MPI_Finalize would
// leave messages behind that the program has sent.
void Transport::finish_injected(Endpoint& endpoint) {
  if (!client_.started() || client_.notes().finalise.is_called.get() == 0) return;
  while (endpoint.engine().has_injected(endpoint)) progress();
}

// Other processes may wait for what is under way: the report of a deadlock says that its sender has left it.
void Transport::note_left_sends(Endpoint& endpoint) {
  const Engine& engine = endpoint.engine();
  ipc::WaitNote& note = client_.block().note;
  const message::Transfer* oldest = engine.oldest_transfer();
  if (oldest != nullptr && oldest->kind == message::TransferKind::message && oldest->inbox == &endpoint) {
    note.left_sends = engine.unfinished();
    note.left_target = static_cast<std::int32_t>(oldest->target);
    note.left_tag = oldest->tag;
    return;
  }
  const auto awaits = [&](const message::Receive& receive) {
    return receive.inbox == &endpoint && awaits_acknowledgement(receive);
  };
  if (const message::Receive* receive = engine.find_waiting(awaits)) {
    note.left_sends = engine.count_waiting(awaits);
    note.left_target = static_cast<std::int32_t>(receive->source);
    note.left_tag = receive->tag;
  }
}

// A synchronous message of the program whose receiver has not matched it is under way only as the receive of
// its acknowledgement.
bool Transport::awaits_acknowledgement(const message::Receive& receive) const {
  const bool is_mpich = client_.notes().library.handle_bytes.get() == 4;
  return receive.source != message::any_source && ipc::is_of_program(receive.tag) &&
         ipc::is_acknowledgement(receive.tag, is_mpich);
}

// The library may take messages meanwhile to count them, as MPICH does with those of MPI_COMM_WORLD.
void Transport::add_unreceived() {
  if (client_.notes().finalise.is_called.get() == 0) return;
  ipc::WaitNote& note = client_.block().note;
  for (Endpoint* endpoint : endpoints_) {
    if (endpoint == nullptr) continue;
    endpoint->queues().matcher(true).for_each_kept([&](const message::KeptMessage& kept) {
      const message::MessageHeader& header = kept.message.header;
      if (!ipc::is_of_program(header.tag)) return;
      if (!unreceived_.emplace(kept.message.source, header.sequence).second) return;
      add(note.unreceived, kept.message);
    });
  }
}

// Before the endpoint is closed, the library may still be about to receive them.
void Transport::note_unreceived_of_collectives(Endpoint& endpoint) {
  if (client_.notes().finalise.is_called.get() == 0) return;
  ipc::WaitNote& note = client_.block().note;
  endpoint.queues().matcher(true).for_each_kept([&](const message::KeptMessage& kept) {
    const message::MessageHeader& header = kept.message.header;
    if (ipc::is_of_program(header.tag)) return;
    if (unreceived_.emplace(kept.message.source, header.sequence).second)
      add(note.unreceived_of_collectives, kept.message);
  });
}

void Transport::enabled() {
  real_gpus_.has_driver();
  if (!client_.join()) {
    throw FabricError(FI_EOPBADSTATE, "fi_enable: this rank has called MPI_Finalize and left the simulation");
  }
}

bool Transport::progress() {
  client_.charge(std::exchange(later_ps_, 0));
  for (const auto& engine : engines_) engine->give_rings_back();
  note_unreceived();
  write_wait_note();
  return dispatch(client_.poll(client_.has_event() ? 1 : least_events()));
}

// Until the program's wait can end, each receive that it waits for has to get a message.
std::uint32_t Transport::least_events() const {
  const ipc::Block& block = client_.block();
  const ipc::ProgramMessages& program = block.program_messages;
  if (!program.awaits_any() || client_.has_threads()) return 1;
  std::uint32_t count = 0;
  for (const auto& engine : engines_) {
    if (engine->held() != 0) return 1;
    count += engine->count_waiting(
        [&program](const message::Receive& receive) { return program.awaits(receive.number); });
  }
  return std::max(count, 1U);
}

bool Transport::progress_visible() {
  return dispatch(client_.visible());
}

bool Transport::dispatch(const ipc::Event* event) {
  if (event == nullptr) return false;
  client_.dispatch(*event);
  return true;
}

void Transport::take(const ipc::Event& event) {
  try {
    engine(event.rail).take(event);
  } catch (const message::MalformedMessage& error) {
    report_malformed(error.what());
  }
}

bool Transport::progress_truthfully() {
  const ipc::Testing testing(client_.progress());
  return progress();
}

message::Inbox* Transport::inbox(std::uint16_t number) const {
  return endpoint(number);
}

std::byte* Transport::take_slot(ipc::Request& request, std::size_t bytes) {
  request.slot = client_.take_slot();
  if (request.slot == ipc::no_slot) return nullptr;
  request.slot_length = static_cast<std::uint32_t>(bytes);
  return client_.slot_data(client_.rank(), request.slot);
}

void Transport::control_arrived(message::Inbox* inbox, const message::Message& message) {
  if (message.header.kind == message::MessageKind::request) {
    atomics_.execute(static_cast<Endpoint*>(inbox), message);
  } else {
    atomics_.answered(message);
  }
}

void Transport::report_malformed(const char* what) {
  warn("rank " + std::to_string(client_.rank()) + " received " + what);
  for (Endpoint* endpoint : endpoints_) {
    if (endpoint == nullptr || endpoint->receive_cq() == nullptr) continue;
    endpoint->receive_cq()->push(
        {.flags = FI_RECV, .error = FI_EIO, .detail = static_cast<int>(ErrorDetail::malformed)});
    return;
  }
}

// A process may stop in the poll that follows: what it then waits for is in its block, for the report of a
// deadlock.
void Transport::write_wait_note() {
  ipc::WaitNote& note = client_.block().note;
  note.receives = 0;
  note.sends = atomics_.under_way();
  note.has_send_tag = 0;
  if (const AtomicTransfer* atomic = atomics_.oldest())
    note.send_target = static_cast<std::int32_t>(atomic->target);
  // The note has room for one receive and one transfer: those of the first rail that has any.
  for (auto engine = engines_.rbegin(); engine != engines_.rend(); ++engine) write_wait_note(**engine, note);
  if (note.sends == 0 && client_.notes().finalise.is_called.get() != 0) note_synchronous_sends(note);
}

// Otherwise the call says what the rank waits for.
void Transport::note_synchronous_sends(ipc::WaitNote& note) const {
  const auto awaits = [this](const message::Receive& receive) { return awaits_acknowledgement(receive); };
  for (const auto& engine : engines_) {
    const message::Receive* receive = engine->find_waiting(awaits);
    if (receive == nullptr) continue;
    note.sends = engine->count_waiting(awaits);
    note.send_target = static_cast<std::int32_t>(receive->source);
    note.has_send_tag = 1;
    note.send_tag = receive->tag;
    return;
  }
}

void Transport::write_wait_note(const Engine& engine, ipc::WaitNote& note) {
  note.receives += engine.waiting();
  if (const message::Receive* oldest = engine.oldest_receive()) {
    note.receive_source =
        oldest->source == message::any_source ? -1 : static_cast<std::int32_t>(oldest->source);
    note.receive_tag = oldest->tag;
  }
  note.sends += engine.unfinished();
  if (const message::Transfer* oldest = engine.oldest_transfer()) {
    note.send_target = static_cast<std::int32_t>(oldest->target);
    note.has_send_tag = oldest->kind == message::TransferKind::message ? 1 : 0;
    note.send_tag = oldest->tag;
  }
}

}  // namespace apenet::libfabric
